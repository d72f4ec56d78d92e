"""Passes over rows (`row_passes`) where neighbours lie in neighbouring rows: the lanes of a vector are rows, so that no sum
has to be put together at the end. A softmax over channels before the columns of a picture.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.row_range import Rows, nested
from ..nest.tile_axis import Piece, Tiles, chunks, over, pieces
from ..vectorize.epilogue import Block, Writer
from ..vectorize.vectorize import At, Vectorizer, together
from .lower import ACROSS, RowChoice, Scratch, added, needed, results
from .recognise import Pass, RowForm


def lower_across(b: Builder, form: RowForm, choice: RowChoice, target: Target, writer: Writer, scratch: Scratch,
                 rows: Rows | None) -> None:
    n = form.outer[-1]

    def block(at: At) -> None:
        def tile(start: Affine, t: Tiles) -> None:
            parts = pieces(t.size, choice.lanes, target.has_masked)
            Across(b, target, form, n, {**at, n: start}, parts, writer, scratch).run()

        over(b, chunks(n.extent, choice.lanes * ACROSS), tile)

    nested(b, form.outer[:-1], {}, block, rows)


@dataclass(frozen=True, slots=True)
class Across:
    """A tile of rows, `parts` of them a vector each."""
    b: Builder
    target: Target
    form: RowForm
    n: Axis
    start: At
    parts: tuple[Piece, ...]
    writer: Writer
    scratch: Scratch

    def run(self) -> None:
        places = [Vectorizer(self.b, self.target, {**self.start, self.n: self.start[self.n] + p.start}, self.n, p.lanes,
                             p.active) for p in self.parts]
        for p in self.form.passes:
            for e in p.uniform:
                together(places, e)
            if p.reductions:
                places = self.reduced(p, places)
            else:
                self.outputs(p, p.axes, places)

    def reduced(self, p: Pass, places: Sequence[Vectorizer]) -> list[Vectorizer]:
        """The places, where the reductions of a pass are known."""
        inits = [Literal(r.identity, Type(r.dtype, v.lanes)) for r in p.reductions for v in places]
        sums = self.loops(p, p.axes, places, inits)
        each = len(places)
        return [Vectorizer(self.b, self.target, v.at, self.n, v.lanes, v.active, results(
            self.form, p, sums[i::each]), outer=v) for i, v in enumerate(places)]

    def loops(self, p: Pass, axes: tuple[Axis, ...], places: Sequence[Vectorizer], sums: Sequence[Operand]
              ) -> Sequence[Operand]:
        if axes:
            return self.b.loop(axes[0], lambda *sums: self.loops(p, axes[1:], self.moved(places, axes[0]), sums), sums)
        here = self.loaded(p, places)
        for e in needed(p):
            together(here, e)
        for v, part in zip(here, self.parts):
            self.scratch.store(p, v, part.start)
        terms = [(r, v) for r in p.reductions for v in here]
        return [added(p, r, v, x) for (r, v), x in zip(terms, sums)]

    def moved(self, places: Sequence[Vectorizer], axis: Axis) -> list[Vectorizer]:
        return [v.inner({**v.at, axis: Affine.of(axis)}) for v in places]

    def loaded(self, p: Pass, places: Sequence[Vectorizer]) -> list[Vectorizer]:
        """The places, where what earlier passes have stored is known."""
        return [Vectorizer(self.b, self.target, v.at, self.n, v.lanes, v.active, self.scratch.load(
            p, v.at, part.start, part.lanes, part.active), outer=v) for v, part in zip(places, self.parts)]

    def outputs(self, p: Pass, axes: tuple[Axis, ...], places: Sequence[Vectorizer]) -> None:
        if axes:
            self.b.loop(axes[0], lambda: self.outputs(p, axes[1:], self.moved(places, axes[0])))
            return
        here = self.loaded(p, places)
        value, = p.roots
        for v, part, result in zip(here, self.parts, together(here, value)):
            self.writer.write(Block(v.at, None, 1, self.n, (Piece(0, part.lanes, part.active),)), outer=v,
                              given={value: result})
