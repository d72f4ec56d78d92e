"""The choice of a contraction's lowering by vectors: the register tile of its micro-kernel, the time when b is packed, the
order of loops, cache blocks. A heuristic from the pattern, the machine and the cost of code (`target.costs`). Other
micro-kernels make their own choice (`micro_kernels`).
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...elements.affine import Axis
from ...elements.expression import Load, Reduce, is_float
from ...elements.traverse import nodes
from ...graph.types import ITEM_SIZES
from ...target.target import Target
from ..code_size_model import TileCode
from ..nest.loop_nest import Nest
from ..strategy import Constraints
from .cache_blocking import CacheBlocks, choose_blocks
from .choice import (
    ContractionChoice,
    aliased,
    bytes_read,
    code_of,
    in_pairs,
    lanes_of_sums,
    machine,
    may_repeat,
    packing_of,
)
from .int8.amx_choose import choose_amx
from .int8.byte_factors import are_summed_in_lanes, prefixes
from .micro_kernels import multiply_bytes
from .pattern import Contraction
from .prefetch import is_worthwhile
from .recognise import contiguous, recognise
from .register_tile import Tile, choose_tile, ranked_tiles

MAX_TRIED_TILES = 5
"""Maximum number of tiles that a measured search tries."""
MAX_TERMS_FOR_LESS_CODE = 1 << 23
"""Maximum terms of a product in cache blocks for which code size matters; a larger product has the fastest tile."""


def choose_vectors(pattern: Contraction, constraints: Constraints) -> ContractionChoice:
    """Return a choice with a tile of sums in vector registers, of floats (fma) or integers, one element of K at a time."""
    target, packing, step = constraints.target, packing_of(pattern), "fma" if is_float(pattern.reduce.dtype) else "multiply"
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
    found = None if pattern.lines else in_blocks(pattern, lanes, packing == "compiling", target)
    if found and not (soon and (is_near(pattern, target) or not found[1].copied)):  # prefetched panels need no blocks
        whole, blocks = found
        when = packing if packing == "compiling" else "running" if blocks.filled else "never"
        return ContractionChoice(whole, lanes, step, when, False, blocks)
    large = pattern.n.extent * pattern.depth * ITEM_SIZES[pattern.reduce.dtype] > target.l2_bytes // 3
    return ContractionChoice(tile, lanes, step, packing, large and pattern.passes > tile.rows, None, large and soon)


def others(pattern: Contraction, choice: ContractionChoice, target: Target) -> Iterator[ContractionChoice]:
    """Yield variants of a choice: with the best other tiles of the cost model, the other order of loops, or without blocks."""
    if choice.step not in ("fma", "multiply", "dot2", "dot4"):
        return
    if choice.blocks is None:
        few, seen = aliased(pattern, target), machine(pattern, choice.step, target)
        for tile in ranked_tiles(pattern.rows, pattern.n.extent, choice.lanes, seen, few)[:MAX_TRIED_TILES]:
            yield replace(choice, tile=tile)
        if choice.step not in ("dot2", "dot4") and pattern.rows > choice.tile.rows:
            yield replace(choice, columns_first=not choice.columns_first)
    elif choice.packing == "compiling":
        plain = choose_tile(pattern.rows, pattern.n.extent, choice.lanes, target, aliased(pattern, target))
        yield from (replace(choice, tile=plain, columns_first=first, blocks=None) for first in (True, False))


def in_blocks(pattern: Contraction, lanes: int, constant: bool, target: Target) -> tuple[Tile, CacheBlocks] | None:
    """Return the tile and the blocks of a product, or None if it is better without blocks. Small products take a smaller tile
    if its blocks are alike."""
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


def is_near(pattern: Contraction, target: Target) -> bool:
    """True if rows stay in the second-level cache and are contiguous along K, so that a copy of them is no better."""
    return isinstance(pattern.a, Load) and bytes_read(pattern, pattern.a) <= target.l2_bytes and all(
        pattern.a.index[0].coefficient(k) in (0, 1) for k in pattern.reduce.axes)


def run_interleaved(nests: Sequence[Nest], target: Target) -> bool:
    """True if all pieces of a nest with sums are contractions that can run over exactly the points where conditions on their
    outer axes and rows hold, and over exactly the values of K that the conditions leave."""
    sums = [nest for nest in nests if any(isinstance(e, Reduce) for e in nodes(nest.value))]
    return all(runs_interleaved(nest, target) for nest in sums)


def runs_interleaved(nest: Nest, target: Target) -> bool:
    pattern = recognise(nest, False)
    if pattern is None or not all(w.index.axes <= {*pattern.outer, pattern.m} for w in nest.where):
        return False
    if pattern.tested and choose_amx(pattern, Constraints(target)):
        return False
    return not are_summed_in_lanes(pattern, target) or prefixes(pattern, Axis("k", pattern.depth)) is not None
