"""Products of float32 by limbs of bfloat16 on a matrix unit. Rows of a are split on demand, several blocks of rows at a time,
which stay in the second-level cache while all columns pass. Sums go to scratch, or straight to the output if there is no
epilogue. Values out of range are computed in float32 afterwards.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.row_range import RowRange
from ...nest.tile_axis import Cut, Piece, Tiles, chunks, in_steps
from ...vectorize.epilogue import EpilogueWriter, OutputBlock
from ...vectorize.vectorize import Vectorizer
from ..bf16_split.choose import STEP, LimbBlockShape, power_of, row_blocks, row_groups
from ..bf16_split.pack_a import FLOATS, SplitRows
from ..bf16_split.pack_b import LimbPanels
from ..choice import ContractionChoice
from ..macro_kernel import MacroKernel, Place, Run, packing, run
from ..matrix_tiles import LANES, is_plain, outside_rows, panels_of
from ..pack_a import RowPacking
from ..pattern import Contraction

MAX_SPLIT_L2_BLOCKS = 8
"""Maximum multiple of `Target.block_bytes` that the limbs of columns split at run time may fill."""

Row = Callable[[Affine, Affine, int], Sequence[Operand]]
"""Function that loads the terms of a row for a pair in a step of K, given the step, the pair, and the number of terms."""


def lower(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Write the loops: see `macro_kernel`."""
    product = LimbProduct.of(b, pattern, LimbBlockShape.of(pattern, target, choice.step, rows is not None), target)
    macro, fill = MacroKernel(b, pattern), product.packed.fill
    batches, places = macro.outer(fill is not None, rows, product.line)
    loops = [batches, macro.columns(product.groups)]
    if fill:
        loops.append(packing(lambda place: fill(place.at, place.first, place.columns)))
    b.shape_tiles(product.shape.tiles)
    run([*loops, places, product.row_groups], product.group)


@dataclass(frozen=True, slots=True)
class LimbProduct:
    """The lowering of the product. `sums` holds the sums of one block of rows and one panel; if K is cut, those of all rows of
    a group and all packed columns; None if sums go straight to the output."""
    b: Builder
    pattern: Contraction
    target: Target
    shape: LimbBlockShape
    groups: list[tuple[Tiles, Cut]]
    packed: LimbPanels
    split: SplitRows
    sums: Buffer | None
    stride: int
    writer: EpilogueWriter

    @staticmethod
    def of(b: Builder, pattern: Contraction, shape: LimbBlockShape, target: Target) -> LimbProduct:
        power, name = power_of(pattern), pattern.nest.name
        assert power is not None
        panel_groups = groups(pattern, shape, target)
        most = max(t.size for t, _ in panel_groups)
        panels = (LimbPanels.of_constants(b, pattern, shape) if is_constant(pattern.b)
                  else LimbPanels.at_run_time(b, pattern, shape, power, most, target))
        row_packing = None
        if len(pattern.reduce.axes) > 1 or pattern.reduce.where:
            row_packing = packed_rows(b, pattern, shape, target)
        sums, stride = None, shape.wide * LANES
        if shape.blocks > 1:
            stride = -(-most // LANES) * LANES
        if shape.blocks > 1 or not is_plain(pattern, pattern.reduce):
            size = shape.rows * stride * (shape.grouped_blocks if shape.blocks > 1 else 1)
            sums = b.scratch(Buffer(f"{name}.tiles", "float32", (size,), "scratch"))
        rows = SplitRows.of(b, pattern, shape, power, row_packing, target)
        writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, shape.wide * LANES)
        return LimbProduct(b, pattern, target, shape, panel_groups, panels, rows, sums, stride, writer)

    # ---- blocks of rows ----------------------------------------------------------------------------------------------
    @property
    def line(self) -> Axis | None:
        """Last outer axis, if several of its positions are computed together, or None."""
        return self.pattern.outer[-1] if self.shape.lines > 1 else None

    def row_groups(self, place: Place, body: Run) -> None:
        """Write the loops over groups of blocks of rows, for several positions of the last outer axis."""
        m, line, macro = self.pattern.m, self.line, MacroKernel(self.b, self.pattern)
        alone = self.split.row_packing and self.shape.grouped_blocks == 1
        tiles = row_blocks(self.pattern, self.shape.rows) if alone else row_groups(self.pattern, self.shape)
        lines = [macro.along(line, chunks(line.extent, self.shape.lines))] if line else []
        run(lines, lambda place: run([macro.along(m, tiles)] if m else [], lambda inner: body(
            replace(inner, lines=place.rows)), place), place)

    def group(self, place: Place) -> None:
        """Write a group: several blocks of rows of each of several lines, K block by block, for all panels."""
        panels = MacroKernel(self.b, self.pattern).panels(is_packed=self.packed.flags is not None)
        is_cut = self.shape.blocks > 1
        if is_cut:
            self.zero(place.rows // self.shape.rows)
        run([self.blocks_of_terms, packing(self.pack_a), panels, self.blocks], self.block, place)
        if is_cut:
            run([panels, self.blocks], self.write, place)

    def blocks_of_terms(self, place: Place, body: Run) -> None:
        terms = Axis("terms", self.shape.blocks)
        start = {} if self.split.row_packing else {self.pattern.reduce.axes[0]: Affine.of(terms) * self.shape.depth}
        self.b.loop(terms, lambda: body(replace(place.moved(start), term=Affine.of(terms))))

    def pack_a(self, place: Place) -> None:
        """Split the rows of a group into limbs, for a block of K."""
        line = Axis("line", place.lines)
        self.b.loop(line, lambda: self.fill(
            self.line_at(place.at, Affine.of(line)), Affine.of(line), place.rows // self.shape.rows))

    def fill(self, at: At, line: Affine, count: int) -> None:
        """Split all blocks of a line into limbs."""
        m, rows, before = self.pattern.m, self.shape.rows, line * self.shape.grouped_blocks
        if not (m and self.split.row_packing and self.shape.grouped_blocks > 1):
            block = Axis("block", count)
            self.b.loop(block, lambda: self.split.fill(
                self.pattern.row_at(at, Affine.of(block) * rows), before + Affine.of(block)))
            return
        for t in row_blocks(self.pattern, rows):  # conditions are settled at constant positions
            number = Axis("block", t.count)
            self.b.loop(number, lambda: self.split.fill(
                {**at, m: Affine.of(number) * rows + t.start}, before + Affine.of(number) + t.start // rows))

    def blocks(self, place: Place, body: Run) -> None:
        """Write a loop over the blocks of a group; `tile` is the number of the block."""
        line, block = Axis("line", place.lines), Axis("block", place.rows // self.shape.rows)

        def one() -> None:
            at = self.pattern.row_at(self.line_at(place.at, Affine.of(line)), Affine.of(block) * self.shape.rows)
            body(replace(place, at=at, tile=Affine.of(line) * self.shape.grouped_blocks + Affine.of(block)))

        self.b.loop(line, lambda: self.b.loop(block, one))

    def line_at(self, at: At, line: Affine) -> At:
        return {**at, self.line: at[self.line] + line} if self.line else at

    # ---- one block of rows, one panel --------------------------------------------------------------------------------
    def block(self, place: Place) -> None:
        for _, i, _ in self.shape.halves:
            for j, piece in enumerate(place.vectors):
                if self.shape.blocks > 1:
                    self.b.load_tile(self.total(i, j), *self.sum_place(place, i, piece.start))
                else:
                    self.b.zero_tile(self.total(i, j))
        step = Axis("step", self.shape.steps)
        self.b.loop(step, lambda: self.step(place, place.term * self.shape.steps + Affine.of(step), Affine.of(step)))
        for _, i, _ in self.shape.halves:
            for j, piece in enumerate(place.vectors):
                self.b.store_tile(self.total(i, j), *self.sum_place(place, i, piece.start))
        self.out_of_range(place)
        if self.sums and self.shape.blocks == 1:
            self.write(place)

    def total(self, i: int, j: int) -> int:
        return i * self.shape.wide + j

    def step(self, place: Place, number: Affine, step: Affine) -> None:
        """Write one K step: multiply all pairs of limbs. With few rows there is one tile of a, and the tiles of columns do not
        all fit in registers, so reload these for each product."""
        loaded: dict[int, int] = {}
        rows, columns, stays = 4, 4 + len(self.shape.heights), len(self.shape.heights) > 1
        for a, limb in self.shape.products:
            for _, i, _ in self.shape.halves:
                if loaded.get(rows + i) != a:
                    self.b.load_tile(rows + i, self.split.buffer, self.split.place(place.tile, step, a, i), STEP)
                    loaded[rows + i] = a
                for j, piece in enumerate(place.vectors):
                    tile = columns + j % (4 - len(self.shape.heights))
                    if loaded.get(tile) != limb or not stays:
                        start = self.packed.place(place.at, place.column + piece.start, number, limb)
                        self.b.load_tile(tile, self.packed.buffer, start, STEP)
                        loaded[tile] = limb
                    self.b.multiply_float_tiles(self.total(i, j), rows + i, tile)

    def sum_place(self, place: Place, i: int, column: int) -> tuple[Buffer, Affine, int]:
        """Return the buffer, offset and row stride of the sums of a tile of rows, from a column of the panel on."""
        first, _, _ = self.shape.halves[i]
        return self.sum_at(place, Affine.of(first), column)

    def sum_at(self, place: Place, row: Affine, column: Affine | int) -> tuple[Buffer, Affine, int]:
        if self.sums is None:
            index, m = self.pattern.nest.index, self.pattern.m
            assert m
            at = {**place.at, m: place.at[m] + row, self.pattern.n: place.at[self.pattern.n] + column}
            return self.pattern.nest.out, index.substitute(at), index.coefficient(m)
        if self.shape.blocks == 1:
            return self.sums, row * self.stride + column, self.stride
        inside = place.column if self.packed.flags or len(self.groups) == 1 else Affine()
        return self.sums, (place.tile * self.shape.rows + row) * self.stride + inside + column, self.stride

    def zero(self, count: int) -> None:
        """Set the sums of a group to 0."""
        assert self.sums
        vector = Axis("vector", count * self.shape.rows * self.stride // LANES)
        self.b.loop(vector, lambda: self.b.store(self.sums, Affine.of(vector) * LANES, Literal(0.0, FLOATS)))  # type: ignore[arg-type]

    # ---- out of range ------------------------------------------------------------------------------------------------
    def out_of_range(self, place: Place) -> None:
        """Compute rows and columns that are out of range, and whose limbs are zeros, in float32."""
        flags = self.split.flags
        columns: Operand = Literal(0, Type("int32"))
        if self.packed.flags:
            for piece in place.vectors:
                columns = self.b.op("or", columns, self.packed.flag(place.column + piece.start, place.term))
        some = self.b.op("or", columns, self.b.load(flags, self.split.block_flag(place.tile)))

        def rows(first: int, tile: int, height: int) -> None:
            row = Axis("row", height)

            def one() -> None:
                flag = self.b.load(flags, self.split.flag(place.tile, Affine.of(row) + first))
                self.b.when(self.is_set(self.b.op("or", flag, columns)), lambda: self.row(
                    place, tile, Affine.of(row), flag), likely=False)

            self.b.loop(row, one)

        def all_rows() -> None:
            for first, tile, height in self.shape.halves:
                rows(first, tile, height)

        self.b.when(self.is_set(some), all_rows, likely=False)

    def is_set(self, flag: Operand) -> Operand:
        return self.b.op("lt", Literal(0, flag.type), flag)

    def row(self, place: Place, tile: int, row: Affine, flag: Operand) -> None:
        """Compute one row of a tile and panel in float32, term by term; store it if the row or columns are out of range."""
        first, _, _ = self.shape.halves[tile]
        sums = self.in_floats(place, lambda step, pair, count: [
            self.split.element(place.at, place.tile, tile, row, step, pair * 2 + i) for i in range(count)])
        for piece, x in zip(place.vectors, sums, strict=True):
            def add(piece: Piece = piece, x: Operand = x) -> None:
                buffer, start, _ = self.sum_at(place, row + first, piece.start)
                total = x if self.shape.blocks == 1 else self.b.op("add", self.b.load(buffer, start, LANES), x)
                self.b.store(buffer, start, total)

            if self.packed.flags:
                self.b.when(self.is_set(self.b.op("or", flag, self.packed.flag(place.column + piece.start, place.term))), add)
            else:
                add()

    def in_floats(self, place: Place, row: Row) -> Sequence[Operand]:
        """Return the sums of one row of a panel over a block of K, in float32."""
        return in_steps(self.b, self.shape.depth, STEP, lambda step, terms, sums: in_steps(
            self.b, terms, 2, lambda pair, count, sums: self.pair(place, row, step, pair, count, sums), sums),
            [Literal(0.0, FLOATS)] * len(place.vectors))

    def pair(self, place: Place, row: Row, step: Affine, pair: Affine, count: int,
             sums: Sequence[Operand]) -> list[Operand]:
        """Add two terms, or one."""
        factors, result = row(step, pair, count), []
        for piece, total in zip(place.vectors, sums, strict=True):
            for x, y in zip(factors, self.terms_of(place, piece, step, pair, count)):
                total = self.b.op("fma", self.b.splat(x, LANES), y, total)
            result.append(total)
        return result

    def terms_of(self, place: Place, piece: Piece, step: Affine, pair: Affine, count: int) -> Sequence[Operand]:
        """Return two terms of columns, or one: from their limbs, or from b itself if the limbs may be zeros."""
        if not self.packed.flags:
            number = place.term * self.shape.steps + step
            return self.packed.pair(place.at, place.column + piece.start, number, pair)
        (k,), n = self.pattern.reduce.axes[-1:], self.pattern.n
        at = place.at
        places = [{**at, n: at[n] + piece.start, k: at[k] + step * STEP + pair * 2 + i} for i in range(count)]
        return [Vectorizer(self.b, self.target, at, n, LANES, piece.active).vector(self.pattern.b) for at in places]

    # ---- epilogue ----------------------------------------------------------------------------------------------------
    def write(self, place: Place) -> None:
        """Write the outputs of one block of rows and one panel."""
        around = frozenset({self.pattern.m})
        known = [outside_rows(self.b, self.target, self.pattern, place.at, piece, around, self.pattern.reduce)
                 for piece in place.vectors]
        row = Axis("row", self.shape.rows)

        def line() -> None:
            at = self.pattern.row_at(place.at, Affine.of(row))
            for piece, outer in zip(place.vectors, known, strict=True):
                buffer, start, _ = self.sum_at(place, Affine.of(row), piece.start)
                value = self.b.load(buffer, start, LANES)
                self.writer.write(OutputBlock(at, self.pattern.m, 1, self.pattern.n, (piece,)), [value], outer)

        self.b.loop(row, line)


def packed_rows(b: Builder, pattern: Contraction, shape: LimbBlockShape, target: Target) -> RowPacking:
    """Return the packing that copies the rows of a block, with K flat."""
    stride = shape.depth + (LANES if shape.depth % 1024 == 0 else 0)
    buffer = b.scratch(Buffer(f"{pattern.nest.name}.copied", "float32", ((shape.rows - 1) * stride + shape.depth,), "scratch"))
    return RowPacking(b, target, pattern, pattern.a, 0, buffer, shape.depth, stride, "float32")  # type: ignore[arg-type]


def groups(pattern: Contraction, shape: LimbBlockShape, target: Target) -> list[tuple[Tiles, Cut]]:
    """Return the columns in groups, and the panels of each group; one group if b is constant, or fits."""
    width = shape.wide * LANES
    each = width * shape.blocks * shape.steps * shape.limbs * 2 * STEP
    most = max(1, int(MAX_SPLIT_L2_BLOCKS * target.block_bytes / each))
    if is_constant(pattern.b) or pattern.n.extent <= most * width:
        return [(Tiles(0, pattern.n.extent, 1), panels_of(pattern.n.extent, width))]
    return [(t, panels_of(t.size, width)) for t in chunks(pattern.n.extent, most * width)]
