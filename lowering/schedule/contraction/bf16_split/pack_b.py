"""Pack B: the columns of b in limbs of bfloat16, in the order in which tiles are loaded: [block of 16 columns][step of
K][limb][pair of terms][column] [term], padded with zeros. Constants are split at compile time; other data by loops, in which
columns with a value out of range (`micro_kernels.amx_limbs`) become zeros, block by block, and are flagged.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer
from ....graph.types import Array
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.loop_nest import At
from ...nest.tile_axis import Piece, in_steps
from ..layout import PanelLayout
from ..matrix_tiles import LANES, panels_of
from ..pack_b import Panels, divided
from ..pack_panels import PanelPacking, over_panels
from ..pattern import Contraction
from .choose import STEP, LimbBlockShape, constants
from .pack_a import BITS, FLOATS, HALF, NOTHING, UPPER, Seen, existing, out_of_range, seen, split

PAIRS = STEP // 2
SPLIT_VECTORS = 4
"""Number of vectors of columns that are split at a time."""


@dataclass(frozen=True, slots=True)
class LimbPanels:
    """Packed b. If b is not constant, `flags` has a 1 for each block of columns and of K out of range, and `fill` packs a given
    number of columns from one on."""
    b: Builder
    shape: LimbBlockShape
    panels: Panels
    buffer: Buffer
    flags: Buffer | None = None
    fill: Callable[[At, Affine, int], None] | None = None

    @staticmethod
    def of_constants(b: Builder, pattern: Contraction, shape: LimbBlockShape) -> LimbPanels:
        layout = layout_of(shape, pattern.n.extent)
        data = layout.packed(limbs_of(constants(pattern), shape.limbs), "bfloat16").reshape(-1)
        buffer = Buffer(f"{pattern.nest.name}.limbs", "bfloat16", (data.size,), "constant", data)
        return LimbPanels(b, shape, Panels(pattern.n, (), "bfloat16", pattern.b, layout, buffer, pattern.batch), buffer)

    @staticmethod
    def at_run_time(b: Builder, pattern: Contraction, shape: LimbBlockShape, power: int, columns: int,
                    target: Target) -> LimbPanels:
        """Return panels with scratch for `columns` columns at a time."""
        name, layout = pattern.nest.name, layout_of(shape, columns)
        buffer = b.scratch(Buffer(f"{name}.limbs", "bfloat16", (layout.size,), "scratch"))
        flags = b.scratch(Buffer(f"{name}.columns", "int32", (layout.columns // LANES * shape.blocks,), "scratch"))
        packing = LimbPacking(b, target, pattern.b, pattern.n, pattern.reduce.axes[-1], layout, buffer, shape, power, flags)
        return LimbPanels(b, shape, Panels(pattern.n, (), "bfloat16", pattern.b, layout, buffer), buffer, flags, packing.fill)

    def place(self, at: At, column: Affine, step: Affine, limb: int) -> Affine:
        """Return the offset of a tile of columns from a multiple of 16 on; steps are counted from the beginning of K."""
        return self.panels.place(at, column, step * STEP, LANES, limb)

    def flag(self, column: Affine, block: Affine) -> Operand:
        """Return the flag of columns from a multiple of 16 on in a block of K: 1 if they are out of range."""
        assert self.flags
        return self.b.load(self.flags, flag_place(self.shape, column, block))

    def pair(self, at: At, column: Affine, step: Affine, pair: Affine) -> tuple[Operand, Operand]:
        """Return two terms of 16 columns, restored from their limbs."""
        words = [self.b.op("bits", self.b.load(self.buffer, self.place(at, column, step, limb) + pair * STEP, STEP), type=BITS)
                 for limb in range(self.shape.limbs)]
        return self.sum([self.b.op("shl", w, Literal(16, BITS)) for w in words]), self.sum(
            [self.b.op("and", w, Literal(UPPER, BITS)) for w in words])

    def sum(self, limbs: Sequence[Operand]) -> Operand:
        """Return the number that has these limbs, added from the least on: each sum is exact."""
        *others, total = [self.b.op("bits", x, type=FLOATS) for x in limbs]
        for x in reversed(others):
            total = self.b.op("add", total, x)
        return total


@dataclass(frozen=True, slots=True)
class LimbPacking(PanelPacking):
    """The packing of pairs of limbs, which also sets `flags`."""
    shape: LimbBlockShape
    power: int
    flags: Buffer

    def fill(self, at: At, first: Affine, extent: int) -> None:
        """Pack `extent` columns from `first` on, in all blocks of K: several at a time, since neighbours are contiguous."""
        block = Axis("block", self.shape.blocks)

        def panel(start: Affine, vectors: Sequence[Piece]) -> None:
            self.b.loop(block, lambda: self.columns({**at, self.n: first + start}, start, Affine.of(block), vectors))

        over_panels(self.b, panels_of(extent, SPLIT_VECTORS * LANES), panel)

    def columns(self, at: At, column: Affine, block: Affine, vectors: Sequence[Piece]) -> None:
        """Pack some vectors of columns in a block of K; if they are out of range, set their flags and write zeros."""
        found = in_steps(self.b, self.shape.depth, STEP, lambda step, terms, before: self.step(
            at, column, block * self.shape.steps + step, vectors, terms, before), NOTHING * len(vectors))
        for i, piece in enumerate(vectors):
            outside = out_of_range(self.b, (found[2 * i], found[2 * i + 1]), self.power)
            self.b.store(self.flags, flag_place(self.shape, column + piece.start, block), outside)
            is_outside = self.b.op("lt", Literal(0, outside.type), outside)
            self.b.when(is_outside, lambda: self.clear(column + piece.start, block), likely=False)

    def step(self, at: At, column: Affine, step: Affine, vectors: Sequence[Piece], terms: int, found: Sequence[Operand]
             ) -> Sequence[Operand]:
        """Pack 32 terms, of which the first `terms` exist."""
        found = in_steps(self.b, terms, 2, lambda pair, count, before: [x for i, piece in enumerate(vectors) for x in self.two(
            at, column, step, pair, piece, count, (before[2 * i], before[2 * i + 1]))], found)
        pairs = -(-terms // 2)
        if self.shape.depth > STEP and pairs < PAIRS:
            rest = Axis("pair", PAIRS - pairs)
            self.b.loop(rest, lambda: self.zeros(column, step, Affine.of(rest) + pairs, vectors))
        return found

    def two(self, at: At, column: Affine, step: Affine, pair: Affine, piece: Piece, terms: int, found: Seen) -> Seen:
        """Pack a pair of terms of a vector of columns, or one term and 0."""
        limbs = []
        for x in self.rows({**at, self.n: at[self.n] + piece.start, self.k: step * STEP + pair * 2}, piece, terms):
            x = existing(self.b, x, piece.active)
            found = seen(self.b, x, found)
            limbs.append(split(self.b, x, self.shape.limbs))
        for limb, values in enumerate(zip(*limbs)):
            low = self.b.op("lshr", values[0], Literal(16, BITS))
            both = self.b.op("or", low, self.b.op("and", values[1], Literal(UPPER, BITS))) if terms == 2 else low
            value = self.b.op("bits", both, type=Type("bfloat16", STEP))
            self.b.store(self.buffer, self.limb_place(column + piece.start, step, pair, limb), value)
        return found

    def limb_place(self, column: Affine, step: Affine, pair: Affine, limb: int) -> Affine:
        """Return the offset of a pair of terms of columns from a multiple of 16 on."""
        return self.layout.place(column, step * STEP, LANES, limb) + pair * STEP

    def zeros(self, column: Affine, step: Affine, pair: Affine, vectors: Sequence[Piece]) -> None:
        for piece in vectors:
            for limb in range(self.shape.limbs):
                place = self.limb_place(column + piece.start, step, pair, limb)
                self.b.store(self.buffer, place, Literal(0.0, Type("bfloat16", STEP)))

    def clear(self, column: Affine, block: Affine) -> None:
        """Write zeros for a block of columns and of K."""
        steps, pairs = Axis("step", self.shape.steps), Axis("pair", PAIRS)
        self.b.loop(steps, lambda: self.b.loop(pairs, lambda: self.zeros(
            column, block * self.shape.steps + Affine.of(steps), Affine.of(pairs), [Piece(0, LANES, LANES)])))


def layout_of(shape: LimbBlockShape, columns: int) -> PanelLayout:
    """Return panels of 16 columns, with the limbs of 32 terms one after the other, and contiguous pairs of terms."""
    return PanelLayout(panels_of(columns, LANES), shape.blocks * shape.steps * STEP, 2, shape.limbs, STEP)


def limbs_of(data: Array, limbs: int) -> Array:
    """Return [batch, n, k] of float32 as bfloat16 limbs, [batch, limb, n, k]."""
    import ml_dtypes
    found, rest = [], data
    for _ in range(limbs):
        limb = ((rest.view(np.uint32) + HALF) & np.uint32(0xFFFF_0000)).view(np.float32)
        found.append((limb.view(np.uint32) >> 16).astype(np.uint16).view(ml_dtypes.bfloat16))
        rest = rest - limb
    return np.stack(found, 1)


def flag_place(shape: LimbBlockShape, column: Affine, block: Affine) -> Affine:
    """Return the offset of the flag of 16 columns from a multiple of 16 on, in a block of K."""
    return divided(column, LANES) * shape.blocks + block
