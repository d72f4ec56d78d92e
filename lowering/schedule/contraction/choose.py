"""How a contraction is done: the register tile of its micro-kernel, the step of K, when b is packed, the order of loops, cache
blocks. A heuristic: it follows from the pattern, the machine and what code costs (`target.costs`).
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Axis
from ...elements.expression import Load, Reduce, is_float
from ...elements.traverse import loads, loads_beside, nodes
from ...graph.types import ITEM_SIZES
from ...target.target import Target
from ..code_size_model import TileCode, share_of
from ..nest.constant_data import constant, is_constant
from ..nest.loop_nest import Nest
from ..nest.padding_conditions import PaddingConditions
from ..nest.tile_axis import Cut, pieces
from ..strategy import Precision, Weights
from ..vectorize.epilogue import operations
from .bf16_split.choose import choose_by_limbs
from .cache_blocking import CacheBlocks, choose_blocks
from .int8 import dot8_tiles, dual_multiply, multiply_bytes, scalar_sums, widening
from .int8.amx_choose import choose_tiles
from .int8.vnni import bytes_of, can_pack_all_rows, prefixes, rows_of_group
from .pack_b import have_four_bits
from .pattern import Contraction
from .prefetch import is_worthwhile
from .recognise import contiguous, recognise
from .register_tile import Tile, choose_tile, of_sums, panels, ranked_tiles

MAX_PADDED_PLACES = 512
"""Places of a kernel of which padding leaves some out, each with code of its own in products of four bytes: with more, none."""
MAX_TRIED_TILES = 5
"""Tiles that a measured search tries."""
MIN_OUTER_ITERATIONS = 16
"""Iterations of the outer loops that are enough to divide among threads."""
MAX_UNDIVIDED_TERMS = 30_000
"""Terms, for a lane, of a product that no threads divide: two of `Costs.task_grain_cycles`."""
MAX_TERMS_FOR_LESS_CODE, MAX_INT8_TERMS_FOR_LESS_CODE = 1 << 23, 1 << 25
"""Terms of a product in cache blocks, and of one of bytes: with more it has the fastest tile, whatever its code."""


@dataclass(frozen=True, slots=True)
class ContractionChoice:
    """`step` is how one step of K is done: "fma", "multiply", "dot4", "dot8", "dual", "pairs", "bytes", "dot", "widen",
    "tiles", "bf16x6", "bf16x3". `packing` is when b is packed: "compiling", "running" or "never". With `columns_first` each
    panel stays in the cache while all rows pass, or those of a `group`; `prefetching` says whether panels are prefetched."""
    tile: Tile
    lanes: int
    step: str
    packing: str
    columns_first: bool
    blocks: CacheBlocks | None = None
    prefetching: bool = False
    group: int | None = None
    """Rows of a product of bytes that are packed together; None: all, where columns come first, else those of a tile."""
    wide_weights: bool = False
    """Whether weights of bytes are kept as numbers of 16 bits."""

    def cut(self, columns: int, target: Target) -> Cut:
        """The panels of the columns, and the vectors of each."""
        least = min(4, self.lanes) if self.step in ("dot4", "dot8") else 1
        return [(t, pieces(t.size, self.lanes, target.has_masked, least)) for t in panels(columns, self.lanes, self.tile)]

    def __str__(self) -> str:
        when = {"compiling": "packed while compiling", "running": "packed while running", "never": "not packed"}
        within = f" in groups of {self.group} rows" if self.group else ""
        order = str(self.blocks) if self.blocks else ("columns" if self.columns_first else "rows") + " outermost" + within
        tile = f"tiles of {self.tile.rows} rows by {self.tile.vectors} vectors of {self.lanes}"
        prefetching = ", panels prefetched" if self.prefetching else ""
        wide = " as int16" if self.wide_weights else ""
        return f"contraction: {self.step}, {tile}, {when[self.packing]}{wide}, {order}{prefetching}"


def choose_limbs(pattern: Contraction, target: Target, precision: Precision) -> ContractionChoice | None:
    """Products of bfloat16 limbs of float32, on a matrix unit, where the precision allows it."""
    tiles = choose_by_limbs(pattern, target, precision) if is_float(pattern.reduce.dtype) else None
    return ContractionChoice(tiles, lanes_of_sums(pattern, target), precision, packing_of(pattern), False) if tiles else None


def choose_amx(pattern: Contraction, target: Target) -> ContractionChoice | None:
    """Products of bytes on a matrix unit."""
    tiles = choose_tiles(pattern, target) if has_byte_products(pattern, target) else None
    return ContractionChoice(tiles, lanes_of_sums(pattern, target), "tiles", packing_of(pattern), False) if tiles else None


def choose_vnni(pattern: Contraction, target: Target) -> ContractionChoice | None:
    """Products of bytes, four at a time in each lane."""
    if not has_byte_products(pattern, target):
        return None
    lanes, packing, seen = lanes_of_sums(pattern, target), packing_of(pattern), machine(pattern, "dot4", target)
    much = pattern.passes * pattern.n.extent * pattern.depth > MAX_INT8_TERMS_FOR_LESS_CODE
    prices, code = (target.costs.int8_tile_prices, None) if much else (target.costs.tile_prices, code_of(pattern))
    tile = choose_tile(
        pattern.rows, pattern.n.extent, lanes, seen, aliased(pattern, target), prices, code, may_repeat(pattern, lanes)
    )
    large = pattern.n.extent * pattern.depth > target.l2_bytes // 3
    if large and not can_pack_all_rows(pattern, target):
        group = rows_of_group(pattern, tile.rows, target)
        return ContractionChoice(tile, lanes, "dot4", packing, group is not None, group=group)
    soon = packing == "compiling" and is_worthwhile(pattern, tile.rows, target)
    return ContractionChoice(tile, lanes, "dot4", packing, large and pattern.passes > tile.rows, None, large and soon)


def choose_dual(pattern: Contraction, target: Target, weights: Weights) -> ContractionChoice | None:
    """Products of bytes by pairs of 16 bits, with a tile that fits the registers."""
    factors, tile = dual_multiply.factors_of(pattern, target), dual_multiply.tile_of(pattern, target)
    if factors is None:
        return None
    choice = ContractionChoice(tile, 1, "dual", "compiling", False, wide_weights=weights == "int16")
    if dual_multiply.is_staged(pattern, factors, tile):
        return replace(choice, step="pairs")
    return choice if factors.by_words else None


def choose_dot8(pattern: Contraction, target: Target) -> ContractionChoice | None:
    """Products of bytes by pairs of rows and of columns."""
    if not dot8_tiles.factors_of(pattern, target) or places_with_conditions(pattern) > MAX_PADDED_PLACES:
        return None
    return ContractionChoice(dot8_tiles.tile_of(pattern), dot8_tiles.LANES, "dot8", "compiling", False)


def choose_widening(pattern: Contraction, target: Target) -> ContractionChoice | None:
    """Products of bytes by vectors of columns that are widened."""
    if not widening.factors_of(pattern, target) or places_with_conditions(pattern) > MAX_PADDED_PLACES:
        return None
    tile, lanes = widening.tile_of(pattern, target)
    return ContractionChoice(tile, lanes, "widen", "compiling", False)


def choose_scalar_sums(pattern: Contraction, target: Target) -> ContractionChoice | None:
    """Products of bytes, a vector of them at a time added to a register."""
    if not scalar_sums.factors_of(pattern, target) or in_pairs(pattern, target):
        return None
    return ContractionChoice(scalar_sums.tile_of(pattern), 1, "dot", "compiling", False)


def choose_vectors(pattern: Contraction, target: Target) -> ContractionChoice:
    """A tile of sums in vector registers, one element of K at a time: of floats (fma), or of integers."""
    packing, step = packing_of(pattern), "fma" if is_float(pattern.reduce.dtype) else "multiply"
    two_in_a_byte = packing == "compiling" and in_pairs(pattern, target)
    lanes = 1 if two_in_a_byte else lanes_of_sums(pattern, target)
    if not two_in_a_byte and multiply_bytes.factors_of(pattern, target):
        step = "bytes"
    tile = choose_tile(pattern.rows, pattern.n.extent, lanes, machine(pattern, step, target), aliased(pattern, target),
                       target.costs.tile_prices if step == "fma" else target.costs.integer_tile_prices, code_of(pattern),
                       may_repeat(pattern, lanes), two_in_a_byte)
    if packing == "running" and contiguous(pattern) and pattern.passes < 4 * tile.rows:
        packing = "never"
    if step == "bytes":
        return ContractionChoice(tile, lanes, step, packing, False)
    soon = packing == "compiling" and is_worthwhile(pattern, tile.rows, target)
    found = in_blocks(pattern, lanes, packing == "compiling", target)
    if found and not (soon and (is_near(pattern, target) or not found[1].copied)):  # panels prefetched need no blocks
        whole, blocks = found
        when = packing if packing == "compiling" else "running" if blocks.filled else "never"
        return ContractionChoice(whole, lanes, step, when, False, blocks)
    large = pattern.n.extent * pattern.depth * ITEM_SIZES[pattern.reduce.dtype] > target.l2_bytes // 3
    return ContractionChoice(tile, lanes, step, packing, large and pattern.passes > tile.rows, None, large and soon)


def in_pairs(pattern: Contraction, target: Target) -> bool:
    """Whether weights can lie two in a byte, which are of neighbouring columns."""
    if not target.keeps_int4 or is_float(pattern.reduce.dtype) or pattern.n.extent % 2:
        return False
    return have_four_bits(constant(pattern.b, (*pattern.batch, pattern.n, *pattern.reduce.axes)))


def lanes_of_sums(pattern: Contraction, target: Target) -> int:
    return target.lanes(ITEM_SIZES[pattern.reduce.dtype])


def packing_of(pattern: Contraction) -> str:
    """When b is packed, if it is."""
    return "compiling" if is_constant(pattern.b) else "running"


def has_byte_products(pattern: Contraction, target: Target) -> bool:
    """Whether four products of bytes are done at a time in each lane."""
    return (target.dot_product is not None and bytes_of(pattern) is not None and lanes_of_sums(pattern, target) >= 4
            and places_with_conditions(pattern) <= MAX_PADDED_PLACES)


def machine(pattern: Contraction, step: str, target: Target) -> Target:
    """The machine as products see it that are done so: those of bytes share their registers with pointers."""
    if step == "bytes":
        return replace(target, vector_registers=target.integer_registers)
    return of_sums(pattern.reduce.dtype, target) if step == "multiply" else target


def others(pattern: Contraction, choice: ContractionChoice, target: Target) -> Iterator[ContractionChoice]:
    """The same with the other tiles that the cost model thinks most of, with the other order of loops, and without blocks."""
    if choice.step not in ("fma", "multiply", "dot4"):
        return
    if choice.blocks is None:
        few, seen = aliased(pattern, target), machine(pattern, choice.step, target)
        for tile in ranked_tiles(pattern.rows, pattern.n.extent, choice.lanes, seen, few)[:MAX_TRIED_TILES]:
            yield replace(choice, tile=tile)
        if choice.step != "dot4" and pattern.rows > choice.tile.rows:
            yield replace(choice, columns_first=not choice.columns_first)
    elif choice.packing == "compiling":
        plain = choose_tile(pattern.rows, pattern.n.extent, choice.lanes, target, aliased(pattern, target))
        yield from (replace(choice, tile=plain, columns_first=first, blocks=None) for first in (True, False))


def in_blocks(pattern: Contraction, lanes: int, constant: bool, target: Target) -> tuple[Tile, CacheBlocks] | None:
    """The tile and the blocks of a product for which blocks are better; a smaller tile for less work, if its blocks are
    alike."""
    def tile(code: TileCode | None) -> Tile:
        return choose_tile(pattern.rows, pattern.n.extent, lanes, target, False, target.costs.blocked_tile_prices, code)

    whole = tile(None)
    blocks = choose_blocks(pattern, whole, lanes, constant, target)
    if blocks is None:
        return None
    if pattern.rows * pattern.n.extent * pattern.depth > MAX_TERMS_FOR_LESS_CODE:
        return whole, blocks
    less = tile(code_of(pattern))
    others = choose_blocks(pattern, less, lanes, constant, target)
    alike = others and (others.filled, others.copied) == (blocks.filled, blocks.copied)
    return (less, others) if others and alike else (whole, blocks)


def code_of(pattern: Contraction, group: int = 1) -> TileCode:
    """What the code of a tile costs, beside its work."""
    steps = pattern.depth * pattern.iterations * math.prod(a.extent for a in pattern.outer)
    taps = math.prod(a.extent for a in PaddingConditions.of(pattern.reduce, pattern.m, pattern.n).tapped)
    last = pattern.reduce.axes[-1].extent if group == 1 else -(-pattern.depth // group)
    return TileCode(steps, operations(pattern.a), operations(pattern.nest.value, pattern.reduce), taps, last,
                    share_of(pattern.nest.value))


def places_with_conditions(pattern: Contraction) -> int:
    """How many places of K "dot4" distinguishes at most, each with code of its own."""
    return math.prod(a.extent for a in pattern.reduce.axes if any(w.index.coefficient(a) for w in pattern.reduce.where))


def may_repeat(pattern: Contraction, lanes: int) -> bool:
    """Whether rows may be computed twice: their outputs could not lie where something is that is read with the sums, and
    the iterations of a loop may do so."""
    read = [x for x in loads_beside(pattern.nest.value, pattern.reduce) if x.buffer.data is None]
    return has_outer_iterations(pattern, lanes) and not any(pattern.m in x.index[0].axes for x in read)


def has_outer_iterations(pattern: Contraction, lanes: int) -> bool:
    """Whether other loops than that over rows are there to be divided among threads, or there is little to divide."""
    iterations = pattern.iterations * math.prod(a.extent for a in pattern.outer)
    return (
        iterations >= MIN_OUTER_ITERATIONS
        or iterations * pattern.rows * pattern.n.extent * pattern.depth <= MAX_UNDIVIDED_TERMS * lanes
    )


def aliased(pattern: Contraction, target: Target) -> bool:
    """Whether all rows of a tile fall into the same few sets of the first-level cache, and do not lie in the second."""
    stride = target.costs.cache_set_stride_bytes
    return pattern.m is not None and any(x.index[0].coefficient(pattern.m) * ITEM_SIZES[x.dtype] % stride == 0
                                      and bytes_read(pattern, x) > target.l2_bytes for x in loads(pattern.a))


def is_near(pattern: Contraction, target: Target) -> bool:
    """Whether rows are in the second-level cache as tiles read them: no copy of them is better."""
    return isinstance(pattern.a, Load) and bytes_read(pattern, pattern.a) <= target.l2_bytes and all(
        pattern.a.index[0].coefficient(k) in (0, 1) for k in pattern.reduce.axes)


def bytes_read(pattern: Contraction, x: Load) -> int:
    """Bytes of a buffer that all rows read, at most."""
    return min(x.buffer.nbytes, pattern.passes * pattern.depth * ITEM_SIZES[x.dtype])


def run_interleaved(nests: Sequence[Nest], target: Target) -> bool:
    """Whether the pieces of a nest are contractions that can run over the places where conditions on their outer axes and their
    rows hold, and over just the values of K that these leave; others may be without sums."""
    sums = [nest for nest in nests if any(isinstance(e, Reduce) for e in nodes(nest.value))]
    return all(runs_interleaved(nest, target) for nest in sums)


def runs_interleaved(nest: Nest, target: Target) -> bool:
    pattern = recognise(nest, False)
    if pattern is None or not all(w.index.axes <= {*pattern.outer, pattern.m} for w in nest.where):
        return False
    if pattern.tested and choose_amx(pattern, target):
        return False
    return not (target.dot_product and bytes_of(pattern)) or prefixes(pattern, Axis("k", pattern.depth)) is not None
