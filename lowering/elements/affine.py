"""Affine index expressions over loop axes: `2*oh + kh - 1`. Exact, immutable, compared by value (axes by identity).

Beside axes, two things may stand where an axis stands: `Wrapped`, a row's place in a circular buffer, and `Computed`, an
index that is read from data (gather, table look-up) and that is in range by construction.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...runtime.records import dataclass

if TYPE_CHECKING:
    from .expression import Expr


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """An index that runs over range(extent). Two axes are the same only if they are the same object."""
    name: str
    extent: int

    def __repr__(self) -> str:
        return f"{self.name}<{self.extent}"


@dataclass(frozen=True, slots=True)
class Wrapped:
    """source modulo extent: a row's place in a circular buffer."""
    source: Affine
    extent: int

    @property
    def not_negative(self) -> Affine:
        """The source plus the multiple of the extent that makes it 0 or more: rows of padding have numbers below 0."""
        return self.source + -(min(self.source.bounds[0], 0) // self.extent) * self.extent


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """The value of an integer expression, clamped into range(extent): an index that comes from data."""
    value: Expr
    extent: int


Term = Axis | Wrapped | Computed


@dataclass(frozen=True, slots=True)
class Affine:
    """sum(coefficient * term) + const."""
    terms: tuple[tuple[Term, int], ...] = ()
    const: int = 0

    @staticmethod
    def of(x: Affine | Term | int) -> Affine:
        match x:
            case Affine():
                return x
            case int():
                return Affine((), x)
            case _:
                return Affine(((x, 1),)) if x.extent != 1 else Affine()

    @staticmethod
    def sum(terms: Iterable[tuple[Term, int]], const: int = 0) -> Affine:
        total: dict[Term, int] = {}
        for term, coefficient in terms:
            total[term] = total.get(term, 0) + coefficient
        return Affine(tuple([term for term in total.items() if term[1]]), const)

    def __add__(self, other: Affine | Term | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other) if other else self
        other = Affine.of(other)
        if not other.terms:
            return Affine(self.terms, self.const + other.const)
        return Affine.sum(self.terms + other.terms, self.const + other.const)

    def __sub__(self, other: Affine | Term | int) -> Affine:
        return self + Affine.of(other) * -1

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        return Affine(tuple([(t, c * factor) for t, c in self.terms]) if factor else (), self.const * factor)

    def coefficient(self, term: Term | None) -> int:
        return next((c for t, c in self.terms if t is term), 0)

    def without(self, axis: Axis) -> Affine:
        """The rest of the sum."""
        return Affine(tuple((t, c) for t, c in self.terms if t is not axis), self.const)

    @property
    def axes(self) -> frozenset[Axis]:
        """Axes that are terms, or stand inside a modulo or a computed index."""
        found = frozenset([t for t, _ in self.terms if isinstance(t, Axis)])
        return found if len(found) == len(self.terms) else found | self.hidden

    @property
    def hidden(self) -> frozenset[Axis]:
        """Axes on which the index depends in a way that is not affine."""
        result: frozenset[Axis] = frozenset()
        for t, _ in self.terms:
            match t:
                case Wrapped(source, _):
                    result |= source.axes
                case Computed(value, _):
                    from .traverse import free_axes
                    result |= free_axes(value)
        return result

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest value; both are reached where all terms are axes."""
        low = high = self.const
        for t, c in self.terms:
            if c > 0:
                high += c * (t.extent - 1)
            else:
                low += c * (t.extent - 1)
        return low, high

    def substitute(self, at: Mapping[Axis, Affine], inside: Callable[[Computed], Affine] | None = None) -> Affine:
        """The index with axes replaced; inside computed indices too, or `inside` says what stands for these."""
        terms: list[tuple[Term, int]] = []
        const = self.const
        for term, coefficient in self.terms:
            match term:
                case Axis():
                    place = at.get(term)
                    if place is None:
                        terms.append((term, coefficient))
                        continue
                case Wrapped(source, extent):
                    moved = source.substitute(at, inside)
                    place = Affine(((Wrapped(moved, extent), 1),)) if moved.terms else Affine((), moved.const % extent)
                case Computed():
                    place = inside(term) if inside else self.computed(term, at)
            terms += [(t, c * coefficient) for t, c in place.terms]
            const += place.const * coefficient
        return Affine.sum(terms, const)

    @staticmethod
    def computed(term: Computed, at: Mapping[Axis, Affine]) -> Affine:
        """A computed index with axes replaced."""
        from .traverse import of_computed, substitute
        return of_computed(term, substitute(term.value, at))

    def divide(self, by: int) -> tuple[Affine, Affine] | None:
        """(quotient, remainder) by a positive constant where both are affine, else None."""
        whole = [(t, c // by) for t, c in self.terms if c % by == 0]
        rest = Affine.sum(((t, c) for t, c in self.terms if c % by), self.const % by)
        low, high = rest.bounds
        return (Affine.sum(whole, self.const // by), rest) if low >= 0 and high < by else None


@dataclass(frozen=True, slots=True)
class Range:
    """The condition low <= index < high."""
    index: Affine
    low: int
    high: int

    def substitute(self, at: Mapping[Axis, Affine], inside: Callable[[Computed], Affine] | None = None) -> Range:
        return Range(self.index.substitute(at, inside), self.low, self.high)

    @property
    def known(self) -> bool | None:
        """True or False where it holds for all or for no indices, None where it depends."""
        low, high = self.index.bounds
        if self.low <= low and high < self.high:
            return True
        return False if high < self.low or low >= self.high else None
