"""The loops of a window of bytes (`int8_window`): words of four taps, or of two, their products with packed weights, and the
epilogue of the sums. If columns go by whole vectors of bytes (`int8_blocks`), byte shuffles make the words, and the sums stay
in the first-level cache until a loop over rows packs them.
"""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Computed, Range
from ...elements.expression import Buffer, Const, Expr, Load
from ...elements.traverse import rewrite
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand, Type
from ...target.target import Target
from ..contraction.initial_sums import biased, sum_of
from ..contraction.int8.pack_b import with_sums
from ..contraction.layout import PanelLayout
from ..derived_constants import Made, derive
from ..nest.constant_data import constant
from ..nest.loop_nest import At, Nest, is_dense
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Cut, Piece, Tiles, chunks, over, pieces
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.vectorize import Vectorizer
from .int8_blocks import GROUP_BYTES, SUM_VECTORS, Band, found_beside, narrow
from .int8_window import WORD_BYTES, ByteWindow, ByteWindowChoice, Tap, lines_of, moved, recognise


@dataclass(frozen=True, slots=True)
class Int8Window(Strategy):
    """The strategy for windows of bytes with constant weights, four taps at a time, or two."""
    nest: Nest
    target: Target
    choice: ByteWindowChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> Int8Window | None:
        choice = recognise(nest, constraints.target, constraints.by_rows) if is_dense(nest) else None
        return Int8Window(nest, constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def __str__(self) -> str:
        return str(self.choice)


def lower(b: Builder, nest: Nest, choice: ByteWindowChoice, target: Target, rows: RowRange | None) -> None:
    pattern, outer = choice.pattern, nest.axes[:1] if rows else ()
    m, n = pattern.m, pattern.n
    more = tuple(a for a in nest.axes[len(outer):] if a is not m and a is not n)
    known, bias = biased(nest, pattern.reduce, (n,))
    lines = lines_of(pattern, choice.rows) or []
    blocks = WindowBlocks.of(b, nest, pattern, known, bias, choice.bands, choice.rows, target) if choice.bands else None
    first = choice.bands[-1].end if choice.bands else 0
    columns = [Tiles(t.start + first, t.size, t.count) for t in chunks(n.extent - first, choice.lanes)]
    if blocks and not columns:
        weights, initial = blocks.weights, blocks.initial
    else:
        vectors: Cut = [(Tiles(t.start - first + i * t.size + p.start, p.active, 1), (Piece(0, p.lanes, p.active),))
                        for t in columns for i in range(t.count) for p in cut(t.size, choice.lanes, target)]
        make = functools.partial(packed, n=n, first=first, axes=pattern.reduce.axes, words=pattern.words, fill=pattern.fill,
                                 vectors=vectors, taps=pattern.taps, dtype=pattern.factor)
        (weights, initial), _ = derive(b, (f"{nest.name}.packed", f"{nest.name}.initial"), (pattern.weights, *bias), make)
    writer = EpilogueWriter(b, target, nest, pattern.reduce, choice.rows * choice.lanes, known=known)

    def places(at: At) -> None:
        body = TapPlaces.of(b, pattern, weights, initial, writer, at, first)
        over(b, lines, lambda y, line: tiles(body, {**at, **({m: y} if m else {})}, line))

    def tiles(body: TapPlaces, at: At, line: Tiles) -> None:
        if blocks:
            blocks.tile(body, at, line)
        over(b, columns, lambda x, column: body.tile({**at, n: x}, line, cut(column.size, choice.lanes, target)))

    nested(b, (*outer, *more), {}, places, rows)


def cut(columns: int, lanes: int, target: Target) -> tuple[Piece, ...]:
    return pieces(columns, lanes, target.has_masked, WORD_BYTES)


def packed(weights: Expr, *bias: Expr, n: Axis, first: int, axes: tuple[Axis, ...], words: Sequence[Sequence[Tap]], fill: int,
           vectors: Cut, taps: int, dtype: str) -> Made:
    """Return the weights [vector of columns, word, lane, tap] and the initial sums, from a column on; missing taps are 0."""
    found = of_words(weights, n, axes, words, taps)
    sums = -fill * found.astype(np.int64).sum(axis=(1, 2)) + sum_of(bias, (n,))
    layout = PanelLayout(vectors, len(words) * taps, taps)
    return Made(with_sums(found[first:].reshape(1, n.extent - first, -1), sums[None, first:], layout, dtype))


@dataclass(frozen=True, slots=True)
class TapPlaces:
    """The body of the loops at a point of the outer axes. `rows` maps each tap of the group to the index of its row and the
    test whether x has the row, if that is known only at run time."""
    b: Builder
    pattern: ByteWindow
    weights: Buffer
    initial: Buffer
    writer: EpilogueWriter
    product: str
    first: int = 0
    """First column of the packed weights."""
    rows: Mapping[int, tuple[Affine, Operand]] = field(default_factory=dict)

    @staticmethod
    def of(b: Builder, pattern: ByteWindow, weights: Buffer, initial: Buffer, writer: EpilogueWriter, at: At,
           first: int = 0) -> TapPlaces:
        rows: dict[int, tuple[Affine, Operand]] = {}
        for k in range(pattern.group.extent):
            if pattern.open and (w := pattern.open.substitute({**at, pattern.group: Affine.of(k)})).known is None:
                inside = b.op("max", b.index(w.index), Literal(w.low, INDEX))
                row = Computed(Const(0, "int64"), max(w.high, 2))
                b.bind(row, b.op("min", inside, Literal(w.high - 1, INDEX)))
                rows[k] = Affine.of(row), b.holds((w,))
        return TapPlaces(b, pattern, weights, initial, writer, product_of(pattern, writer.target), first, rows)

    def tile(self, at: At, line: Tiles, vectors: tuple[Piece, ...]) -> None:
        for piece in vectors:
            block = OutputBlock(at, self.pattern.m, line.size, self.pattern.n, (piece,))
            places = [block.place(row, piece.start) for row in range(line.size)]
            column = places[0][self.pattern.n] - self.first
            sums: list[Operand] = [self.b.load(self.initial, column, piece.lanes)] * line.size
            words, each = self.pattern.words, self.pattern.taps
            for number, taps in enumerate(words):
                start = column * (len(words) * each) + number * piece.lanes * each
                weights = self.b.load(self.weights, start, piece.lanes * each)
                sums = [self.b.op(self.product, total, self.word(place, taps, piece), weights, type=total.type)
                        for total, place in zip(sums, places)]
            self.writer.write(block, sums)

    def word(self, place: At, taps: list[Tap], piece: Piece) -> Operand:
        """Return the unsigned bytes of these taps, as one word in each lane."""
        total, flip, doubtful, apart = None, 0, [], self.pattern.tap_bits
        for position, tap in enumerate(taps):
            here, shift = {**place, **tap}, apart * position
            found = self.rows.get(tap[self.pattern.group].const)
            if any(w.substitute(here).known is False for w in self.conditions(found is None)):
                flip |= (self.pattern.fill & 0xFF) << shift
                continue
            value = self.unsigned(here, found, piece)
            if shift:
                value = self.b.op("shl", value, Literal(shift, value.type))
            total = value if total is None else self.b.op("or", total, value)
            flip |= self.pattern.flip << shift
            if found:
                doubtful.append((found[1], shift))
        if total is None:
            return self.factors(Literal(signed(flip), Type("int32", piece.lanes)))
        return self.factors(self.filled(total, flip, doubtful))

    def conditions(self, every: bool) -> tuple[Range, ...]:
        return (*self.pattern.settled, self.pattern.open) if every and self.pattern.open else self.pattern.settled

    def unsigned(self, here: At, found: tuple[Affine, Operand] | None, piece: Piece) -> Operand:
        """Return a byte of x for each lane, zero-extended to 32 bits."""
        x = self.b.load(self.pattern.x.buffer, self.index(here, found), piece.lanes, piece.active)
        plain = self.b.op("bits", x, type=Type("uint8", piece.lanes)) if x.type.dtype == "int8" else x
        return self.b.op("cast", plain, type=Type("int32", piece.lanes))

    def byte(self, here: At, found: tuple[Affine, Operand] | None, lanes: int) -> Operand:
        """Return bytes of x, unchanged, as int8."""
        x = self.b.load(self.pattern.x.buffer, self.index(here, found), lanes)
        return x if x.type.dtype == "int8" else self.b.op("bits", x, type=Type("int8", lanes))

    def index(self, here: At, found: tuple[Affine, Operand] | None) -> Affine:
        """Return the index of a tap in x."""
        index, w = self.pattern.x.index[0], self.pattern.open
        if not found or not w:
            return index.substitute(here)
        inner = index.substitute({a: at for a, at in here.items() if a not in w.index.axes})
        return moved(inner, w, found[0]) or inner

    def filled(self, total: Operand, flip: int, doubtful: list[tuple[Operand, int]]) -> Operand:
        """Return the word with the top bits of its bytes flipped; arbitrary bytes of rows outside x become padding."""
        lanes, whole = total.type.lanes, Type("int32")
        if not doubtful:
            return self.b.op("xor", total, Literal(signed(flip), total.type)) if flip else total
        unsure = sum(0xFF << shift for _, shift in doubtful)
        kept: Operand = Literal(signed(~unsure), whole)
        changed: Operand = Literal(signed(flip & ~unsure), whole)
        for holds, shift in doubtful:
            kept = self.chosen(kept, holds, 0xFF << shift, 0)
            changed = self.chosen(changed, holds, self.pattern.flip << shift, (self.pattern.fill & 0xFF) << shift)
        total = self.b.op("and", total, self.b.splat(kept, lanes, hoist=True))
        return self.b.op("xor", total, self.b.splat(changed, lanes, hoist=True))

    def chosen(self, total: Operand, holds: Operand, yes: int, no: int) -> Operand:
        """Return total | (holds ? yes : no), hoisted as far as possible."""
        bits = self.b.op("select", holds, *(Literal(signed(x), total.type) for x in (yes, no)), hoist=True)
        return self.b.op("or", total, bits, hoist=True)

    def factors(self, word: Operand) -> Operand:
        return self.b.op("bits", word, type=Type(self.pattern.factor, self.pattern.taps * word.type.lanes))


def product_of(pattern: ByteWindow, target: Target) -> str:
    """Return the operation that multiplies words."""
    return target.dot4 if pattern.taps == WORD_BYTES else "dot2"


def signed(word: int) -> int:
    """Return 32 bits as an int32."""
    return (word & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)


# ---- columns in whole vectors of bytes ---------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class WindowBlocks:
    """The data that all blocks of a window share. `value` is the expression to pack, with its constants along `slots`."""
    b: Builder
    target: Target
    nest: Nest
    known: Expr
    pattern: ByteWindow
    bands: Sequence[Band]
    weights: Buffer
    initial: Buffer
    sums: Buffer
    slots: Axis
    value: Expr
    tables: tuple[Expr, ...]

    @staticmethod
    def of(b: Builder, nest: Nest, pattern: ByteWindow, known: Expr, bias: tuple[Expr, ...], bands: Sequence[Band], rows: int,
           target: Target) -> WindowBlocks:
        order = [column for band in bands for column in band.order()]
        slots, lanes = Axis("slot", len(order)), target.vector_bytes // WORD_BYTES
        make = functools.partial(
            packed_blocks,
            n=pattern.n,
            axes=pattern.reduce.axes,
            words=pattern.words,
            fill=pattern.fill,
            order=order,
            lanes=lanes,
            taps=pattern.taps,
            dtype=pattern.factor,
        )
        (weights, initial), _ = derive(b, (f"{nest.name}.blocks", f"{nest.name}.starts"), (pattern.weights, *bias), make)
        value = narrow(nest, known, pattern.n)
        assert value is not None
        tables = {x: in_order(b, nest, x, pattern.n, order, slots) for x in found_beside(value, known, pattern.n) or ()
                  if x.index[0].axes}
        value = rewrite(value, lambda e: e if e is known else tables.get(e) if isinstance(e, Load) else None)
        sums = b.scratch(Buffer(f"{nest.name}.sums.of.blocks", "int32", (rows * target.vector_bytes,), "scratch"))
        return WindowBlocks(
            b, target, nest, known, pattern, bands, weights, initial, sums, slots, value, tuple(tables.values())
        )

    @property
    def lanes(self) -> int:
        return self.target.vector_bytes // WORD_BYTES

    def tile(self, places: TapPlaces, at: At, line: Tiles) -> None:
        """Write all blocks of a tile of rows."""
        for band in self.bands:
            over(self.b, [Tiles(band.start, band.columns, band.count)], lambda x, _: self.block(
                places, {**at, places.pattern.n: x}, line, band))

    def block(self, places: TapPlaces, at: At, line: Tiles, band: Band) -> None:
        """Write a block of columns of a tile of rows."""
        n, steps = places.pattern.n, line.size // band.side
        slot = (at[n] - band.start) * band.side
        for step in range(steps):
            rows = [row_of_tile(places, at, step + steps * side) for side in range(band.side)]
            for v, total in enumerate(self.totals(places, rows, slot, band)):
                self.b.store(self.sums, Affine.of(step * band.size + v * self.lanes), total)
        outer = [self.factors(at, slot + v * self.lanes) for v in range(SUM_VECTORS)]
        number = Axis("row", steps)
        self.b.loop(number, lambda: self.outputs(places, at, Affine.of(number), steps, slot, band, outer))

    # ---- sums --------------------------------------------------------------------------------------------------------
    def totals(self, places: TapPlaces, rows: Sequence[At], slot: Affine, band: Band) -> list[Operand]:
        lanes, size, words, taps_of_word = self.lanes, band.size, self.pattern.words, self.pattern.taps
        sums: list[Operand] = [self.b.load(self.initial, slot + v * lanes, lanes) for v in range(SUM_VECTORS)]
        product = product_of(self.pattern, self.target)
        for number, taps in enumerate(words):
            start = (slot * len(words) + number * size) * taps_of_word
            for v, word in enumerate(Words(self.b, places, rows, band).of(taps)):
                if isinstance(word, Literal) and not word.value:
                    continue
                weights = self.b.load(self.weights, start + v * lanes * taps_of_word, lanes * taps_of_word)
                sums[v] = self.b.op(product, sums[v], word, weights, type=sums[v].type)
        return sums

    # ---- outputs -----------------------------------------------------------------------------------------------------
    def factors(self, at: At, slot: Affine) -> Vectorizer:
        """Compute the values that are equal in all rows."""
        v = Vectorizer(self.b, self.target, {**at, self.slots: slot}, self.slots, self.lanes)
        for table in self.tables:
            v.value(table)
        return v

    def outputs(self, places: TapPlaces, at: At, row: Affine, steps: int, slot: Affine, band: Band, outer: Sequence[Vectorizer]
                ) -> None:
        """Write one row of a block, or the rows that are side by side."""
        found = []
        for v, around in enumerate(outer):
            total = self.b.load(self.sums, row * band.size + v * self.lanes, self.lanes)
            here = {**at, self.slots: slot + v * self.lanes}
            found.append(Vectorizer(self.b, self.target, here, self.slots, self.lanes, given={self.known: total}, outer=around
                                    ).vector(self.value))
        halves = [self.b.op("pack", x, y, type=Type("int16", 2 * self.lanes)) for x, y in (found[:2], found[2:])]
        outputs = self.b.op("pack", halves[0], halves[1], type=Type("int8", band.size))
        for side in range(band.side):
            place = self.nest.index.substitute(row_of_tile(places, at, row + steps * side))
            first = side * band.columns
            stored = outputs if band.side == 1 else self.b.shuffle(outputs, outputs, tuple(range(first, first + band.columns)))
            self.b.store(self.nest.out, place, stored)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of taps for the rows that are side by side."""
    b: Builder
    places: TapPlaces
    rows: Sequence[At]
    band: Band

    def of(self, taps: Sequence[Tap]) -> list[Operand]:
        """Return four vectors of words with the bytes of up to four taps, or of two, with zeros between. Missing taps are
        replaced by others, with weights of 0."""
        found = [self.bytes(tap) for tap in taps]
        if self.places.pattern.taps == 2:
            return self.wide_pairs(found[0], found[-1])
        if all(isinstance(x, Literal) for x in found):
            return [found[0]] * SUM_VECTORS
        first = self.interleaved(found[0], found[min(1, len(found) - 1)], 1)
        second = self.interleaved(found[2], found[-1], 1) if len(found) > 2 else first
        return [word for x, y in zip(first, second) for word in self.interleaved(x, y, 2)]

    def wide_pairs(self, x: Operand, y: Operand) -> list[Operand]:
        """Return the bytes of two taps as pairs of 16-bit numbers."""
        wide = Type("int16", self.band.size // 2)
        if isinstance(x, Literal) and isinstance(y, Literal):
            return [Literal(int(x.value) & 0xFF, wide)] * SUM_VECTORS
        zeros = Literal(0, Type("int8", self.band.size))
        return [self.b.op("bits", word, type=wide) for pair in self.interleaved(x, y, 1)
                for word in self.interleaved(pair, zeros, 1)]

    def interleaved(self, x: Operand, y: Operand, size: int) -> list[Operand]:
        """Return elements of `size` bytes of both, interleaved: from the lower halves of each 16 bytes, then from the upper."""
        type = Type(f"int{8 * size}", self.band.size // size)
        x, y = (z if z.type == type else self.b.op("bits", z, type=type) for z in (x, y))
        half = GROUP_BYTES // size // 2
        return [
            self.b.op(
                "bits", self.b.shuffle(x, y, interleaved_rows(type.lanes, half, upper)), type=Type("int8", self.band.size)
            )
            for upper in (0, 1)
        ]

    def bytes(self, tap: Tap) -> Operand:
        """Return the unsigned bytes of a tap, padding included."""
        pattern = self.places.pattern
        found = self.places.rows.get(tap[pattern.group].const)
        here = [{**row, **tap} for row in self.rows]
        conditions = self.places.conditions(found is None)
        outside = [any(w.substitute(place).known is False for w in conditions) for place in here]
        if all(outside):
            return self.fill_value(self.band.size)
        columns = self.band.columns
        loaded = [self.fill_value(columns) if out else self.places.byte(place, found, columns)
                  for place, out in zip(here, outside)]
        if any(outside):
            return self.joined([x if out else self.unsigned(x, found) for x, out in zip(loaded, outside)])
        return self.unsigned(self.joined(loaded), found)

    def fill_value(self, lanes: int) -> Operand:
        return Literal(to_int8(self.places.pattern.fill), Type("int8", lanes))

    def unsigned(self, x: Operand, found: tuple[Affine, Operand] | None) -> Operand:
        """Return the bytes x with their top bits flipped; bytes of a row outside x, which are arbitrary, become padding."""
        pattern, one = self.places.pattern, Type("int8")
        if found is None:
            return self.b.op("xor", x, Literal(to_int8(pattern.flip), x.type)) if pattern.flip else x
        kept, changed = (self.b.op("select", found[1], Literal(to_int8(yes), one), Literal(to_int8(no), one), hoist=True)
                         for yes, no in ((0xFF, 0), (pattern.flip, pattern.fill)))
        x = self.b.op("and", x, self.b.splat(kept, x.type.lanes, hoist=True))
        return self.b.op("xor", x, self.b.splat(changed, x.type.lanes, hoist=True))

    def joined(self, pieces: Sequence[Operand]) -> Operand:
        while len(pieces) > 1:
            pieces = [self.b.shuffle(x, y, tuple(range(2 * x.type.lanes))) for x, y in zip(pieces[::2], pieces[1::2])]
        return pieces[0]


@functools.cache
def interleaved_rows(lanes: int, half: int, upper: int) -> tuple[int, ...]:
    """Return the shuffle that interleaves two vectors: the lower, or the upper, half of each 2 * half lanes."""
    return tuple([side * lanes + first + upper * half + i for first in range(0, lanes, 2 * half) for i in range(half)
                  for side in (0, 1)])


def row_of_tile(places: TapPlaces, at: At, row: Affine | int) -> At:
    """Return the point of a row of the tile."""
    m = places.pattern.m
    return {**at, m: at[m] + row} if m else at


def to_int8(byte: int) -> int:
    """Return 8 bits as an int8."""
    return (byte & 0xFF ^ 0x80) - 0x80


def packed_blocks(weights: Expr, *bias: Expr, n: Axis, axes: tuple[Axis, ...], words: Sequence[Sequence[Tap]], fill: int,
           order: Sequence[int], lanes: int, taps: int, dtype: str) -> Made:
    """Return the weights [block, word, vector, lane, tap] and the initial sums [slot]."""
    data = of_words(weights, n, axes, words, taps)
    sums = -fill * data.astype(np.int64).sum(axis=(1, 2)) + sum_of(bias, (n,))
    size = SUM_VECTORS * lanes
    layout = PanelLayout([(Tiles(0, size, len(order) // size), (Piece(0, size, size),))], len(words) * taps, taps)
    return Made(with_sums(data[list(order)].reshape(1, len(order), -1), sums[None, list(order)], layout, dtype))


def of_words(weights: Expr, n: Axis, axes: tuple[Axis, ...], words: Sequence[Sequence[Tap]], taps: int
             ) -> np.ndarray:
    """Return the weights as [column, word, tap]; missing taps are 0."""
    data, found = constant(weights, (n, *axes)), np.zeros((n.extent, len(words), taps), np.int8)
    for number, some in enumerate(words):
        for position, tap in enumerate(some):
            place: tuple[slice | int, ...] = (slice(None), *(tap[a].const for a in axes))
            found[:, number, position] = data[place]
    return found


def in_order(b: Builder, nest: Nest, x: Load, n: Axis, order: Sequence[int], slots: Axis) -> Load:
    """Return the constants of the columns in slot order."""
    make = functools.partial(of_slots, n=n, order=order)
    (buffer,), _ = derive(b, (f"{nest.name}.{x.buffer.name}.in.order",), (x,), make)
    return Load(buffer, (Affine.of(slots),))


def of_slots(x: Expr, n: Axis, order: Sequence[int]) -> Made:
    return Made((np.ascontiguousarray(constant(x, (n,))[list(order)]),))
