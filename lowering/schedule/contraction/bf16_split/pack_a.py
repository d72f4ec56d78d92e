"""Pack A: split float32 into limbs of bfloat16, and copy the rows of a block in the order in which tiles are loaded:
[block][step of K][limb] [tile of rows][row][term]. A row with a value out of range (`bf16_split.choose`) becomes zeros, and is
flagged.
"""
from __future__ import annotations

from collections.abc import Sequence

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.loop_nest import At
from ...nest.tile_axis import in_steps
from ...vectorize.vectorize import Vectorizer
from ..matrix_tiles import LANES
from ..pack_a import RowPacking
from ..pattern import Contraction
from .choose import MIN_EXPONENT, STEP, TILE, LimbBlockShape

HALF, UPPER = 1 << 15, -1 << 16
"""Bits of a float32: half of the last bit that is kept, and the mask of the bits that are kept."""
BITS, SIZES, FLOATS = Type("int32", LANES), Type("uint32", LANES), Type("float32", LANES)
ODD, EVEN = tuple(range(1, 4 * LANES, 2)), tuple(range(0, 4 * LANES, 2))
Seen = tuple[Operand, Operand]
"""Minimum, over all values, of twice their bits less 1, and maximum of twice their bits: the sign and 0 do not count."""
NOTHING: Seen = (Literal(0xFFFF_FFFF, SIZES), Literal(0, SIZES))


def split(b: Builder, x: Operand, limbs: int) -> list[Operand]:
    """Return the limbs of a vector of float32, as int32, each in the upper half. Limbs are rounded, ties away from zero."""
    result: list[Operand] = []
    for i in range(limbs):
        bits: Operand = b.op("bits", x, type=BITS)
        if i < 2:  # the rest fits a third limb
            bits = b.op("and", b.op("add", bits, Literal(HALF, BITS)), Literal(UPPER, BITS))
        result.append(bits)
        if i < limbs - 1:
            x = b.op("sub", x, b.op("bits", bits, type=FLOATS))
    return result


def existing(b: Builder, x: Operand, active: int) -> Operand:
    """Return a vector of float32 with zeros after the active elements."""
    if active == LANES:
        return x
    number = b.op("lanes", Literal(0, Type("int32")), type=BITS, hoist=True)
    return b.op("select", b.op("lt", number, Literal(active, BITS)), x, Literal(0.0, FLOATS))


def seen(b: Builder, x: Operand, before: Seen) -> Seen:
    """Return the minimum and the maximum updated with one more vector."""
    bits = b.op("bits", x, type=SIZES)
    twice = b.op("add", bits, bits)
    least, most = before
    return b.op("min", least, b.op("sub", twice, Literal(1, SIZES))), b.op("max", most, twice)


def out_of_range(b: Builder, found: Seen, power: int) -> Operand:
    """Return 1, as int32, if a value is out of range, else 0."""
    least, most = found
    low, high = (2 * (127 + p << 23) for p in (MIN_EXPONENT, power))
    inside = b.op("and", b.op("lt", Literal(low - 2, SIZES), least), b.op("lt", most, Literal(high, SIZES)))
    outside = b.op("any_false", inside, type=Type("bool"))
    return b.op("select", outside, Literal(1, Type("int32")), Literal(0, Type("int32")))


@dataclass(frozen=True, slots=True)
class SplitRows:
    """The rows of a in limbs, of all blocks of a group, in `buffer`. `flags` has a 1 for each row out of range, then for each
    block with such a row. If rows are copied first, `row_packing` copies those of one block."""
    b: Builder
    target: Target
    pattern: Contraction
    shape: LimbBlockShape
    power: int
    buffer: Buffer
    flags: Buffer
    row_packing: RowPacking | None

    @staticmethod
    def of(
        b: Builder, pattern: Contraction, shape: LimbBlockShape, power: int, row_packing: RowPacking | None, target: Target
    ) -> SplitRows:
        name, blocks = pattern.nest.name, shape.grouped_blocks * shape.lines
        size = blocks * shape.steps * shape.limbs * len(shape.heights) * TILE
        buffer = b.scratch(Buffer(f"{name}.rows", "bfloat16", (size,), "scratch"))
        flags = b.scratch(Buffer(f"{name}.flags", "int32", (blocks * (shape.rows + 1),), "scratch"))
        return SplitRows(b, target, pattern, shape, power, buffer, flags, row_packing)

    def place(self, block: Affine, step: Affine, limb: int, tile: int) -> Affine:
        """Return the offset of a tile."""
        shape = self.shape
        return ((block * shape.steps + step) * shape.limbs + limb) * (len(shape.heights) * TILE) + tile * TILE

    def flag(self, block: Affine, row: Affine) -> Affine:
        return block * self.shape.rows + row

    def block_flag(self, block: Affine) -> Affine:
        return block + self.shape.grouped_blocks * self.shape.lines * self.shape.rows

    def fill(self, at: At, block: Affine) -> None:
        """Split a block of rows, which begins at the point `at`; K goes from at[k] on if K is one axis."""
        if self.row_packing:
            self.row_packing.pack(at, self.shape.rows)
        unsafe: Operand = Literal(0, Type("int32"))
        for first, tile, height in self.shape.halves:
            row = Axis("row", height)
            (unsafe,) = self.b.loop(row, lambda found: [self.b.op(
                "or", found, self.row(at, block, tile, first, Affine.of(row)))], [unsafe])
        self.b.store(self.flags, self.block_flag(block), unsafe)

    def row(self, at: At, block: Affine, tile: int, first: int, row: Affine) -> Operand:
        """Split one row; return whether it is out of range."""
        here = self.pattern.row_at(at, row + first)
        least, most = in_steps(self.b, self.shape.depth, STEP, lambda step, active, before: self.step(
            here, row + first, self.place(block, step, 0, tile) + row * STEP, step, active, before), NOTHING)
        outside = out_of_range(self.b, (least, most), self.power)
        self.b.store(self.flags, self.flag(block, row + first), outside)
        is_outside = self.b.op("lt", Literal(0, outside.type), outside)
        self.b.when(is_outside, lambda: self.replace(block, tile, first, row), likely=False)
        return outside

    def step(self, at: At, row: Affine, to: Affine, step: Affine, active: int, before: Sequence[Operand]) -> Seen:
        """Split 32 terms of a row, of which the first `active` exist."""
        found: Seen = (before[0], before[1])
        vectors = []
        for start in (0, LANES):
            x = self.vector(at, row, step * STEP + start, min(max(active - start, 0), LANES))
            found = seen(self.b, x, found)
            vectors.append(split(self.b, x, self.shape.limbs))
        for limb, (one, other) in enumerate(zip(*vectors)):
            halves = [self.b.op("bits", x, type=Type("int16", 2 * LANES)) for x in (one, other)]
            packed = self.b.shuffle(halves[0], halves[1], ODD)
            value = self.b.op("bits", packed, type=Type("bfloat16", STEP))
            self.b.store(self.buffer, to + limb * len(self.shape.heights) * TILE, value)
        return found

    def vector(self, at: At, row: Affine, k: Affine, active: int) -> Operand:
        """Return terms of a row from k on, unchanged, with zeros after the active terms."""
        if not active:
            return Literal(0.0, FLOATS)
        if self.row_packing:
            return self.b.load(self.row_packing.buffer, row * self.row_packing.stride + k, LANES, active)
        (axis,) = self.pattern.reduce.axes
        value = Vectorizer(self.b, self.target, {**at, axis: at[axis] + k}, axis, LANES, active).vector(self.pattern.a)
        return existing(self.b, value, active)

    def replace(self, block: Affine, tile: int, first: int, row: Affine) -> None:
        """Replace a row that is out of range by zeros; or, since copied rows are not kept, by the halves of each number's bits,
        from which the unit computes unused sums."""
        def one(step: Affine, active: int, _: Sequence[Operand]) -> tuple[()]:
            halves: list[Operand] = [Literal(0.0, Type("bfloat16", STEP))] * self.shape.limbs
            if self.row_packing:
                halves[:2] = self.halves(row + first, step * STEP, active)
            for limb, value in enumerate(halves):
                self.b.store(self.buffer, self.place(block, step, limb, tile) + row * STEP, value)
            return ()

        in_steps(self.b, self.shape.depth if self.row_packing else self.shape.steps * STEP, STEP, one)

    def halves(self, row: Affine, k: Affine, active: int) -> list[Operand]:
        """Return the upper and lower halves of the bits of 32 terms."""
        vectors = [self.vector({}, row, k + start, min(max(active - start, 0), LANES)) for start in (0, LANES)]
        words = [self.b.op("bits", x, type=Type("int16", STEP)) for x in vectors]
        return [self.b.op("bits", self.b.shuffle(words[0], words[1], lanes), type=Type("bfloat16", STEP))
                for lanes in (ODD, EVEN)]

    def element(self, at: At, block: Affine, tile: int, row: Affine, step: Affine, term: Affine) -> Operand:
        """Return an original term of a row out of range, for the computation in float32. `at` is the start of the block, `row`
        counts from the first row of its tile."""
        if self.row_packing:
            upper, lower = (self.half(self.place(block, step, limb, tile) + row * STEP + term) for limb in range(2))
            both = self.b.op("or", self.b.op("shl", upper, Literal(16, Type("int32"))), lower)
            return self.b.op("bits", both, type=Type("float32"))
        (axis,) = self.pattern.reduce.axes
        place = self.pattern.row_at(at, row + self.shape.halves[tile][0])
        return Vectorizer(self.b, self.target, {**place, axis: at[axis] + step * STEP + term}).value(self.pattern.a)

    def half(self, place: Affine) -> Operand:
        bits = self.b.op("bits", self.b.load(self.buffer, place), type=Type("uint16"))
        return self.b.op("cast", bits, type=Type("int32"))
