"""The pattern of a contraction, the sum over K of a[m, k] * b[n, k]: the factors and axes of a nest by role. `recognise.py`
finds the pattern."""
from __future__ import annotations

import math

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Buffer, Expr, Load, Reduce
from ..nest.loop_nest import At, Nest, free_axes, number_of


@dataclass(frozen=True, slots=True)
class LineBuffers:
    """The line buffers for a row of outputs: `buffer` has a line of `length` elements for each point of `axes`. `source` reads
    the element at `place` of a line if it is `inside` and the conditions `where` hold; else the element is `fill`."""
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
    """The contraction of a nest: its factors and axes by role."""
    nest: Nest
    reduce: Reduce
    a: Expr
    """First factor, read in place, one scalar for each row of the tile."""
    b: Expr
    m: Axis | None
    """Axis of the rows, which is tiled; not in b."""
    n: Axis
    """Axis of the vectors; not in a, contiguous in the output."""
    outer: tuple[Axis, ...]
    iterations: int = 1
    """Number of times that enclosing loops run the whole contraction."""
    lines: LineBuffers | None = None
    """Line buffers of a, if a is copied for each row of outputs: one line for each outer value of K."""

    @property
    def depth(self) -> int:
        return math.prod(k.extent for k in self.reduce.axes)

    @property
    def rows(self) -> int:
        return self.m.extent if self.m else 1

    @property
    def batch(self) -> tuple[Axis, ...]:
        """Outer axes in b: each of their points has panels of its own."""
        free = free_axes(self.b)
        return tuple(a for a in self.outer if a in free)

    def row_at(self, at: At, row: Affine | int) -> At:
        """Return the point `row` rows after `at`."""
        return {**at, self.m: at[self.m] + row} if self.m else at

    def number_of_row(self, at: At) -> Affine:
        """Return the number of the row, counted over all points of the outer axes."""
        return number_of((*self.outer, *((self.m,) if self.m else ())), at)

    @property
    def inside(self) -> tuple[Range, ...]:
        """Conditions on b alone, under which its index stays in range."""
        known = {*self.batch, *self.reduce.axes}
        return tuple(w for w in self.reduce.where if w.index.axes <= known and not w.index.hidden)

    @property
    def tested(self) -> tuple[Range, ...]:
        """Conditions on rows of outputs: a row for which one fails does not exist."""
        return tuple(w for w in self.nest.where if self.m in w.index.axes)

    @property
    def passes(self) -> int:
        """Number of rows that read the same panels."""
        return self.rows * math.prod(a.extent for a in self.outer if a not in self.batch)
