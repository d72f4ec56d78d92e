"""Which way each condition of a reduction goes in a tile of outputs: settled when compiling, a bound of a loop, or
tested."""
from __future__ import annotations

import math
from dataclasses import dataclass

from ..elements.affine import Axis, Range
from ..elements.expression import Reduce

MOST_UNROLLED = 16
"""A window that is taken apart at a border has no more places than this."""


def is_bound(where: Range, r: Reduce, *lanes: Axis | None) -> bool:
    """Whether a condition can bound one of the loops of r: it is affine, mentions an axis of r, and is equal in all
    lanes."""
    if where.index.hidden or any(where.index.coefficient(a) for a in lanes if a is not None):
        return False
    return any(where.index.coefficient(a) for a in r.axes)


@dataclass(frozen=True, slots=True)
class Conditions:
    """`rows` mention the tile's rows and are settled at constant positions of a tile; `bounds` mention neither rows
    nor lanes; `tests` are what is left, tested where a term is computed. `tapped` are the reduction axes in `rows`."""
    rows: tuple[Range, ...]
    bounds: tuple[Range, ...]
    tests: tuple[Range, ...]
    tapped: frozenset[Axis]

    @staticmethod
    def of(r: Reduce, m: Axis | None, n: Axis) -> Conditions:
        rows: list[Range] = []
        bounds: list[Range] = []
        tests: list[Range] = []
        for w in r.where:
            if not is_bound(w, r, n):
                tests.append(w)
            elif m is None or not w.index.coefficient(m):
                bounds.append(w)
            else:
                (rows if w.index.axes <= {m, *r.axes} else tests).append(w)
        tapped = frozenset(a for w in rows for a in r.axes if w.index.coefficient(a))
        return Conditions(tuple(rows), tuple(bounds), tuple(tests), tapped)

    @property
    def by_single_rows(self) -> bool:
        """Whether border rows are better computed one by one, because unrolling their windows is too much code."""
        return math.prod(a.extent for a in self.tapped) > MOST_UNROLLED
