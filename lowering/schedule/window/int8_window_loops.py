"""The loops of a window of bytes (`byte_window`): words of four taps, their products with packed weights, and what is
done with the sums. It stands where the loops of the other forms stand, below `schedule`.
"""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Computed, Range
from ...elements.expression import Buffer, Const, Expr
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand, Type
from ...target.target import Target
from ..contraction.initial_sums import biased, sum_of
from ..contraction.int8.vnni_pack_b import GROUP, constants
from ..contraction.pack_b import Cut
from ..derived_constants import Made, derive
from ..nest.loop_nest import Nest
from ..nest.row_range import Rows, nested
from ..nest.tile_axis import Piece, Tiles, chunks, over, pieces
from ..vectorize.epilogue import Block, Writer
from ..vectorize.vectorize import At
from .int8_block_loops import Blocks, of_words
from .int8_window import ByteWindow, ByteWindowChoice, Tap, lines_of, moved


def lower(b: Builder, nest: Nest, choice: ByteWindowChoice, target: Target, rows: Rows | None) -> None:
    form, outer = choice.form, nest.axes[:1] if rows else ()
    m, n = form.m, form.n
    more = tuple(a for a in nest.axes[len(outer):] if a is not m and a is not n)
    known, bias = biased(nest, form.reduce, (n,))
    lines = lines_of(form, choice.rows) or []
    blocks = Blocks.of(b, nest, form, known, bias, choice.bands, choice.rows, target) if choice.bands else None
    first = choice.bands[-1].end if choice.bands else 0
    columns = [Tiles(t.start + first, t.size, t.count) for t in chunks(n.extent - first, choice.lanes)]
    if blocks and not columns:
        weights, initial = blocks.weights, blocks.initial
    else:
        vectors: Cut = [(Tiles(t.start - first + i * t.size + p.start, p.active, 1), (Piece(0, p.lanes, p.active),))
                        for t in columns for i in range(t.count) for p in cut(t.size, choice.lanes, target)]
        make = functools.partial(packed, n=n, first=first, axes=form.reduce.axes, words=form.words, fill=form.fill,
                                 vectors=vectors)
        (weights, initial), _ = derive(b, (f"{nest.name}.packed", f"{nest.name}.initial"), (form.weights, *bias), make)
    writer = Writer(b, target, nest, form.reduce, choice.rows * choice.lanes, known=known)

    def places(at: At) -> None:
        body = Places.of(b, form, weights, initial, writer, at, first)
        over(b, lines, lambda y, line: tiles(body, {**at, **({m: y} if m else {})}, line))

    def tiles(body: Places, at: At, line: Tiles) -> None:
        if blocks:
            blocks.tile(body, at, line)
        over(b, columns, lambda x, column: body.tile({**at, n: x}, line, cut(column.size, choice.lanes, target)))

    nested(b, (*outer, *more), {}, places, rows)


def cut(columns: int, lanes: int, target: Target) -> tuple[Piece, ...]:
    return pieces(columns, lanes, target.has_masked, GROUP)


def packed(weights: Expr, *bias: Expr, n: Axis, first: int, axes: tuple[Axis, ...], words: Sequence[Sequence[Tap]], fill: int,
           vectors: Cut) -> Made:
    """The weights [vector of columns, word, lane, tap] and the initial sums, from a column on; what is missing is 0."""
    found = of_words(weights, n, axes, words)
    sums = -fill * found.astype(np.int64).sum(axis=(1, 2)) + sum_of(bias, (n,))
    return Made(constants(found[first:].reshape(1, n.extent - first, -1), sums[None, first:], vectors))


@dataclass(frozen=True, slots=True)
class Places:
    """The body, at a place of the outer axes. `rows` says of each tap of the group where its row is, and whether it is one
    of x, where that is known only here."""
    b: Builder
    form: ByteWindow
    weights: Buffer
    initial: Buffer
    writer: Writer
    first: int = 0
    """The column from which on weights are packed."""
    rows: Mapping[int, tuple[Affine, Operand]] = field(default_factory=dict)

    @staticmethod
    def of(b: Builder, form: ByteWindow, weights: Buffer, initial: Buffer, writer: Writer, at: At,
           first: int = 0) -> Places:
        rows: dict[int, tuple[Affine, Operand]] = {}
        for k in range(form.group.extent):
            if form.open and (w := form.open.substitute({**at, form.group: Affine.of(k)})).known is None:
                inside = b.op("max", b.index(w.index), Literal(w.low, INDEX))
                row = Computed(Const(0, "int64"), max(w.high, 2))
                b.bind(row, b.op("min", inside, Literal(w.high - 1, INDEX)))
                rows[k] = Affine.of(row), b.holds((w,))
        return Places(b, form, weights, initial, writer, first, rows)

    def tile(self, at: At, line: Tiles, vectors: tuple[Piece, ...]) -> None:
        for piece in vectors:
            block = Block(at, self.form.m, line.size, self.form.n, (piece,))
            places = [block.place(row, piece.start) for row in range(line.size)]
            column = places[0][self.form.n] - self.first
            sums: list[Operand] = [self.b.load(self.initial, column, piece.lanes)] * line.size
            words = self.form.words
            for number, taps in enumerate(words):
                start = column * (len(words) * GROUP) + number * piece.lanes * GROUP
                weights = self.b.load(self.weights, start, piece.lanes * GROUP)
                sums = [self.b.op("dot4", total, self.word(place, taps, piece), weights, type=total.type)
                        for total, place in zip(sums, places)]
            self.writer.write(block, sums)

    def word(self, place: At, taps: list[Tap], piece: Piece) -> Operand:
        """The unsigned bytes of these taps, each lane's in a word."""
        total, flip, doubtful = None, 0, []
        for position, tap in enumerate(taps):
            here, shift = {**place, **tap}, 8 * position
            found = self.rows.get(tap[self.form.group].const)
            if any(w.substitute(here).known is False for w in self.conditions(found is None)):
                flip |= self.form.fill << shift
                continue
            value = self.unsigned(here, found, piece)
            if shift:
                value = self.b.op("shl", value, Literal(shift, value.type))
            total = value if total is None else self.b.op("or", total, value)
            flip |= self.form.flip << shift
            if found:
                doubtful.append((found[1], shift))
        if total is None:
            return self.bytes(Literal(signed(flip), Type("int32", piece.lanes)))
        return self.bytes(self.filled(total, flip, doubtful))

    def conditions(self, every: bool) -> tuple[Range, ...]:
        return (*self.form.settled, self.form.open) if every and self.form.open else self.form.settled

    def unsigned(self, here: At, found: tuple[Affine, Operand] | None, piece: Piece) -> Operand:
        """A byte of x in each lane, zero-extended to 32 bits."""
        x = self.b.load(self.form.x.buffer, self.index(here, found), piece.lanes, piece.active)
        plain = self.b.op("bits", x, type=Type("uint8", piece.lanes)) if x.type.dtype == "int8" else x
        return self.b.op("cast", plain, type=Type("int32", piece.lanes))

    def byte(self, here: At, found: tuple[Affine, Operand] | None, lanes: int) -> Operand:
        """Bytes of x as they are."""
        x = self.b.load(self.form.x.buffer, self.index(here, found), lanes)
        return x if x.type.dtype == "int8" else self.b.op("bits", x, type=Type("int8", lanes))

    def index(self, here: At, found: tuple[Affine, Operand] | None) -> Affine:
        """Where a tap is in x."""
        index, w = self.form.x.index[0], self.form.open
        if not found or not w:
            return index.substitute(here)
        inner = index.substitute({a: at for a, at in here.items() if a not in w.index.axes})
        return moved(inner, w, found[0]) or inner

    def filled(self, total: Operand, flip: int, doubtful: list[tuple[Operand, int]]) -> Operand:
        """The word with its upper bits flipped; bytes of rows outside x, which hold anything, are what fills."""
        lanes, whole = total.type.lanes, Type("int32")
        if not doubtful:
            return self.b.op("xor", total, Literal(signed(flip), total.type)) if flip else total
        unsure = sum(0xFF << shift for _, shift in doubtful)
        kept: Operand = Literal(signed(~unsure), whole)
        changed: Operand = Literal(signed(flip & ~unsure), whole)
        for holds, shift in doubtful:
            kept = self.chosen(kept, holds, 0xFF << shift, 0)
            changed = self.chosen(changed, holds, self.form.flip << shift, self.form.fill << shift)
        total = self.b.op("and", total, self.b.splat(kept, lanes, hoist=True))
        return self.b.op("xor", total, self.b.splat(changed, lanes, hoist=True))

    def chosen(self, total: Operand, holds: Operand, yes: int, no: int) -> Operand:
        """total | (holds ? yes : no), as far out as that is known."""
        bits = self.b.op("select", holds, *(Literal(signed(x), total.type) for x in (yes, no)), hoist=True)
        return self.b.op("or", total, bits, hoist=True)

    def bytes(self, word: Operand) -> Operand:
        return self.b.op("bits", word, type=Type("int8", GROUP * word.type.lanes))


def signed(word: int) -> int:
    """32 bits as an int32."""
    return (word & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)
