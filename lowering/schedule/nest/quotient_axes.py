"""Quotients of positions by constants among computed indices: `c` and `m` of `oc = c * M + m`.

Unlike an index from data, a quotient is in range without a clamp, and a quotient and its remainder combine to the position
again. If a vector begins at a multiple of the divisor, the quotient and the remainder of each lane differ from those of the
first lane by constants.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Computed, Term
from ...elements.expression import Apply, Const, Expr, IndexValue


@dataclass(frozen=True, slots=True)
class DividedPosition:
    """A division of a non-negative position by a constant."""
    source: Affine
    by: int

    @property
    def most(self) -> int:
        """Greatest quotient."""
        return self.source.bounds[1] // self.by


def divided(e: Expr) -> DividedPosition | None:
    match e:
        case Apply("div", (IndexValue(index), Const(by))) if by > 0 and index.bounds[0] >= 0:
            return DividedPosition(index, int(by))
    return None


def divided_with_rest(e: Expr) -> DividedPosition | None:
    """Return the division of which an expression is the remainder, or None."""
    match e:
        case Apply("sub", (IndexValue(index), Apply("mul", (quotient, Const(by))))):
            found = divided(quotient)
            return found if found and found.by == by and found.source == index else None
    return None


def division(term: Term) -> DividedPosition | None:
    """Return the division of which a term is the quotient, if the quotient is never clamped, or None."""
    found = divided(term.value) if isinstance(term, Computed) else None
    return found if found and isinstance(term, Computed) and found.most < term.extent else None


def division_of_rest(term: Term) -> DividedPosition | None:
    """Return the division of which a term is the remainder, if the remainder is never clamped, or None."""
    found = divided_with_rest(term.value) if isinstance(term, Computed) else None
    return found if found and isinstance(term, Computed) and found.by <= term.extent else None


def put_together(terms: Sequence[tuple[Term, int]], const: int) -> Affine:
    """Return the sum of the terms, with q * k * by + r * k replaced by k times the dividend."""
    result = Affine.sum(terms, const)
    if sum(isinstance(t, Computed) for t, _ in result.terms) < 2:
        return result
    for rest, k in result.terms:
        if found := division_of_rest(rest):
            for quotient, c in result.terms:
                if c == k * found.by and division(quotient) == found:
                    others = [(t, c) for t, c in result.terms if t is not rest and t is not quotient]
                    whole = found.source * k
                    return put_together((*others, *whole.terms), result.const + whole.const)
    return result


def shared_by(index: Affine, axis: Axis) -> DividedPosition | None:
    """Return the only division through which an index depends on an axis, if the dividend grows by 1 along the axis: groups of
    neighbours read the same element. Else return None."""
    found: set[DividedPosition] = set()
    for term, _ in index.terms:
        if axis in Affine(((term, 1),)).axes:
            by = division(term)
            if by is None or by.source.coefficient(axis) != 1 or axis in by.source.hidden:
                return None
            found.add(by)
    return found.pop() if len(found) == 1 else None
