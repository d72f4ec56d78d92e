"""Functions of one variable as sums of Chebyshev's polynomials over an interval. The first terms of such a sum are nearly as
good as any other polynomial of their degree: one table serves f32 by these, and f64 by all of them."""
from __future__ import annotations

from dataclasses import dataclass

from ..graph.types import F32
from .term import Term


@dataclass(frozen=True, slots=True)
class Chebyshev:
    """The sum of coefficients[k] T_k(u), where u runs from -1 to 1 as x does from `low` to `high`. The first `short` terms are
    good to 2^-27 of the greatest, all of them to 2^-57."""
    low: float
    high: float
    short: int
    coefficients: tuple[float, ...]

    def of(self, x: Term) -> Term:
        """By Clenshaw's recurrence."""
        first, *rest = self.coefficients[:self.short] if x.element == F32 else self.coefficients
        u = (x - (self.low + self.high) / 2) * (2 / (self.high - self.low))
        twice = u + u
        before, last = x.term(0), x.term(rest[-1])
        for coefficient in reversed(rest[:-1]):
            before, last = last, twice * last - before + coefficient
        return u * last - before + first
