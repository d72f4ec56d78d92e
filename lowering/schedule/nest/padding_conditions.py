"""The treatment of a reduction's conditions in a tile of outputs: settled at compile time, loop bounds, or tests."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Load, Reduce
from ...elements.traverse import computed, loads
from .tile_axis import interior

MAX_UNROLLED_PLACES = 16
"""Maximum number of taps of a window that is unrolled at a border."""


def bounds_and_tests(r: Reduce, *lanes: Axis | None) -> tuple[list[Range], list[Range]]:
    """Return the conditions of r that can bound one of its loops, and those that must be tested for each term.

    A bound is affine, mentions an axis of r, and is equal in all `lanes`. It must also provably keep accesses in range:
    an index that can leave its buffer, unless a sum of multiples of the conditions keeps it inside, has to move with
    the index of the bound (h * width + w with 0 <= h < height).
    """
    wild = [x.index[0] for x in loads(r.body) if not kept_in_range(x, r.where)]
    bounds: list[Range] = []
    tests: list[Range] = []
    for w in r.where:
        home = next((a for a in reversed(r.axes) if w.index.coefficient(a)), None)
        if home is None or w.index.hidden or computed((w.index,)) or any(
                w.index.coefficient(a) for a in lanes if a is not None):
            tests.append(w)
            continue
        c = w.index.coefficient(home)
        moves = all(i.coefficient(a) * c == i.coefficient(home) * k for i in wild for a, k in w.index.terms)
        (bounds if moves else tests).append(w)
    return bounds, tests


def kept_in_range(x: Load, where: Sequence[Range]) -> bool:
    """True if x is inside its buffer where the conditions hold, judged by at most one condition for each term of its index."""
    rest, low, high = x.index[0], 0, 0
    for w in where:
        if not w.index.terms:
            continue
        term, c = w.index.terms[0]
        factor, remainder = divmod(rest.coefficient(term), c)
        if factor and not remainder and all(rest.coefficient(t) == factor * k for t, k in w.index.terms):
            least, most = max(w.low, w.index.bounds[0]), min(w.high - 1, w.index.bounds[1])
            rest = rest - w.index * factor
            low, high = low + min(factor * least, factor * most), high + max(factor * least, factor * most)
    least, most = rest.bounds
    return low + least >= 0 and high + most < x.buffer.size


@dataclass(frozen=True, slots=True)
class PaddingConditions:
    """The conditions of a reduction by treatment. `rows` mention the tile's rows and are settled at constant tile positions.
    `bounds` mention neither rows nor lanes. `tests` are the others, tested for each term. `tapped` are the reduction axes
    in `rows`."""
    rows: tuple[Range, ...]
    bounds: tuple[Range, ...]
    tests: tuple[Range, ...]
    tapped: frozenset[Axis]

    @staticmethod
    def of(r: Reduce, m: Axis | None, n: Axis) -> PaddingConditions:
        rows: list[Range] = []
        plain: list[Range] = []
        bounds, tests = bounds_and_tests(r, n)
        for w in bounds:
            if m is None or not w.index.coefficient(m):
                plain.append(w)
            else:
                (rows if w.index.axes <= {m, *r.axes} else tests).append(w)
        tapped = frozenset(a for w in rows for a in r.axes if w.index.coefficient(a))
        return PaddingConditions(tuple(rows), tuple(plain), tuple(tests), tapped)

    @property
    def by_single_rows(self) -> bool:
        """True if border rows are computed one by one, because unrolling their windows would take too much code."""
        return math.prod(a.extent for a in self.tapped) > MAX_UNROLLED_PLACES

    def fractions(self, m: Axis) -> list[float]:
        """Return, for each row, the fraction of its window for which the conditions hold."""
        low, high = interior(m, self.rows)
        return [1.0 if low <= row < high else self.fraction({m: Affine.of(row)}) for row in range(m.extent)]

    def fraction(self, row: Mapping[Axis, Affine]) -> float:
        fraction = 1.0
        for w in (w.substitute(row) for w in self.rows):
            match w.index.terms:
                case ((Axis() as a, _),):
                    low, high = interior(a, (w,))
                    fraction *= (high - low) / a.extent
        return fraction
