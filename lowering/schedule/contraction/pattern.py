"""The pattern of a contraction, the sum over K of a[m, k] * b[n, k]: which factor and which axis of a nest plays which role.
`recognise.py` finds it."""
from __future__ import annotations

import math

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Buffer, Expr, Load, Reduce
from ..nest.loop_nest import At, Nest, free_axes, number_of


@dataclass(frozen=True, slots=True)
class LineBuffers:
    """Lines of the input that a row of outputs reads, `length` elements each, one for each place of `axes`, in `buffer`.
    `source` reads what belongs at a `place` of a line, if that is `inside` and the conditions `where` hold; else `fill` is
    there."""
    buffer: Buffer
    source: Load
    axes: tuple[Axis, ...]
    place: Axis
    length: int
    inside: range
    where: tuple[Range, ...]
    fill: int


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """The pattern: which factor and which axis plays which role."""
    nest: Nest
    reduce: Reduce
    a: Expr
    """Read as it lies in memory, one scalar for each row of the tile."""
    b: Expr
    m: Axis | None
    """Tiled; not in b."""
    n: Axis
    """The vectors' axis; not in a, contiguous in the output."""
    outer: tuple[Axis, ...]
    iterations: int = 1
    """How often all of it is done, by loops around it."""
    lines: LineBuffers | None = None
    """What a is read from, if it is copied for each row of outputs: each of K's outer values has a line."""

    @property
    def depth(self) -> int:
        return math.prod(k.extent for k in self.reduce.axes)

    @property
    def rows(self) -> int:
        return self.m.extent if self.m else 1

    @property
    def batch(self) -> tuple[Axis, ...]:
        """Outer axes in b: each has panels of its own."""
        free = free_axes(self.b)
        return tuple(a for a in self.outer if a in free)

    def row_at(self, at: At, row: Affine | int) -> At:
        """The place of a row, counted from a place on."""
        return {**at, self.m: at[self.m] + row} if self.m else at

    def number_of_row(self, at: At) -> Affine:
        """Which row it is, at all places of the outer axes."""
        return number_of((*self.outer, *((self.m,) if self.m else ())), at)

    @property
    def inside(self) -> tuple[Range, ...]:
        """The conditions on b alone: with them its index stays in range."""
        known = {*self.batch, *self.reduce.axes}
        return tuple(w for w in self.reduce.where if w.index.axes <= known and not w.index.hidden)

    @property
    def tested(self) -> tuple[Range, ...]:
        """The conditions on rows of outputs: those for which one fails are none."""
        return tuple(w for w in self.nest.where if self.m in w.index.axes)

    @property
    def passes(self) -> int:
        """How many rows read the same panels."""
        return self.rows * math.prod(a.extent for a in self.outer if a not in self.batch)
