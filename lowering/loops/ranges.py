"""The least and greatest values of an index: linear forms over loop indices, with the facts about each symbol.

An index is a *form*: a sum of symbols times integers, plus a constant. A symbol is a loop's index, an operation that is
not linear (a minimum, a remainder), or the lane of a vector. Each symbol has an interval of numbers, and *facts*: forms
that are not negative where the symbol is defined (its loop's bounds) or where a condition holds. The least value of a form
is found by replacing the newest symbol by each of its bounds in turn, so that the common terms of bounds cancel:
`kh >= 1 - oh` gives `oh + kh - 1 >= 0`.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from .ir import GatherFrom, Let, Literal, LoadFrom, Operand, Shuffle, Type, Var
from .signatures import INTEGERS

LANE, VECTOR = 1 << 60, 1 << 61
"""LANE + n is the symbol of a lane number in a vector of n, newer than all scalars; symbols from VECTOR on depend on one."""
MAX_CASES = 64
"""Maximum number of cases examined one by one, for a condition that negates a conjunction."""
Interval = tuple[int, int]
LIMITS: dict[str, Interval] = {"bool": (0, 1)} | {
    d: (0, (1 << int(d[4:])) - 1) if d[0] == "u" else (-1 << (int(d[3:]) - 1), (1 << (int(d[3:]) - 1)) - 1)
    for d in INTEGERS}


@dataclass(frozen=True, slots=True, eq=False)
class LinearForm:
    """sum(coefficient * symbol) + const; no coefficient is 0."""
    terms: dict[int, int]
    const: int = 0

    def plus(self, other: LinearForm, factor: int = 1) -> LinearForm:
        """Return self + factor * other."""
        terms = dict(self.terms)
        for s, c in other.terms.items():
            if total := terms.get(s, 0) + c * factor:
                terms[s] = total
            else:
                del terms[s]
        return LinearForm(terms, self.const + other.const * factor)

    def times(self, factor: int) -> LinearForm:
        return LinearForm({s: c * factor for s, c in self.terms.items()} if factor else {}, self.const * factor)

    def moved(self, by: int) -> LinearForm:
        return LinearForm(self.terms, self.const + by)


Definition = Let | LoadFrom | GatherFrom | Shuffle
Facts = Mapping[int, list[tuple[int, LinearForm]]]
"""Facts by symbol s: pairs (k, rest) with k * s + rest >= 0; the rest has older symbols only."""
NO_FACTS: Facts = {}


@dataclass(slots=True)
class Ranges:
    """The known ranges of the integers of one function. `definitions` grows while the function is walked."""
    definitions: dict[Var, Definition] = field(default_factory=dict)
    forms: dict[Var, LinearForm] = field(default_factory=dict)
    intervals: dict[int, Interval] = field(default_factory=dict)
    facts: dict[int, list[tuple[int, LinearForm]]] = field(default_factory=dict)
    quotients: dict[int, tuple[LinearForm, int]] = field(default_factory=dict)
    """Dividend and divisor of each symbol whose dividend may be negative, though perhaps not where the quotient matters."""
    spans: dict[Var, Interval] = field(default_factory=dict)
    data: dict[Buffer, Interval] = field(default_factory=dict)

    # ---- symbols -----------------------------------------------------------------------------------------------------
    def symbol(self, interval: Interval, *facts: tuple[int, LinearForm]) -> LinearForm:
        """Return a new symbol, as a form."""
        number = len(self.intervals)
        if any(s >= LANE for _, rest in facts for s in rest.terms):
            number += VECTOR
        self.intervals[number] = interval
        if facts:
            self.facts[number] = list(facts)
        return LinearForm({number: 1})

    def loop(self, index: Var, low: Operand, high: Operand) -> Interval:
        """Enter a loop; return the interval of its index."""
        first, end = self.form(low), self.form(high)
        interval = self.least(first), -self.least(end.times(-1)) - 1
        self.forms[index] = self.symbol(interval, (1, first.times(-1)), (-1, end.moved(-1)))
        return interval

    def given(self, var: Var, interval: Interval) -> None:
        """Set the interval of a value that comes from outside."""
        self.forms[var] = self.symbol(interval)

    def below(self, x: Var, y: Var) -> None:
        """Record that x <= y, where y is the newer symbol."""
        (newest,) = self.form(y).terms
        self.facts.setdefault(newest, []).append((1, self.form(x).times(-1)))

    # ---- forms -------------------------------------------------------------------------------------------------------
    def form(self, x: Operand) -> LinearForm:
        """Return an integer, or a vector of integers, as a form."""
        if isinstance(x, Literal):
            return LinearForm({}, int(x.value))
        known = self.forms.get(x)
        if known is None:
            known = self.forms[x] = self.derived(x)
        return known

    def unknown(self, type: Type) -> LinearForm:
        return self.symbol(LIMITS[type.dtype])

    def derived(self, x: Var) -> LinearForm:
        match self.definitions.get(x):
            case Let(result, op, args):
                return self.within(result.type, self.operation(result.type, op, args))
            case LoadFrom(address=address, mask=mask, active=active):
                return self.read(address.buffer, mask is not None or active < x.type.lanes)
            case GatherFrom(buffer=buffer, mask=mask, active=active):
                return self.read(buffer, mask is not None or active < x.type.lanes)
            case Shuffle(args=(a, b)):
                (low, high), (least, most) = self.interval(self.form(a)), self.interval(self.form(b))
                return self.symbol((min(low, least), max(high, most)))
        return self.unknown(x.type)

    def within(self, type: Type, form: LinearForm) -> LinearForm:
        """Return the form, or an unknown symbol if the dtype cannot hold all values of the form: then it wraps around."""
        (low, high), (least, most) = self.interval(form), LIMITS[type.dtype]
        return form if least <= low and high <= most else self.unknown(type)

    def read(self, buffer: Buffer, zeros: bool) -> LinearForm:
        """Return a value from memory, for a constant with the range of its data; with `zeros`, some lanes are unread and 0."""
        if buffer.data is None or not buffer.size:
            return self.unknown(Type(buffer.dtype))
        if buffer not in self.data:
            self.data[buffer] = int(np.min(buffer.data)), int(np.max(buffer.data))
        low, high = self.data[buffer]
        return self.symbol((min(low, 0), max(high, 0)) if zeros else (low, high))

    def operation(self, type: Type, op: str, args: tuple[Operand, ...]) -> LinearForm:
        if type.dtype not in LIMITS or any(a.type.dtype not in LIMITS for a in args):
            return self.unknown(type)
        match op, args:
            case ("add" | "sub"), (a, b):
                return self.form(a).plus(self.form(b), 1 if op == "add" else -1)
            case ("splat" | "cast"), (a,):
                return self.form(a)
            case "lanes", (a,):
                return self.form(a).plus(self.lane(type.lanes)) if type.lanes > 1 else self.form(a)
            case ("mul" | "and"), (Literal(), b):
                return self.by_constant(type, op, b, self.form(args[0]).const)
            case ("mul" | "and" | "shl" | "ashr" | "lshr" | "div"), (a, Literal()):
                return self.by_constant(type, op, a, self.form(args[1]).const)
            case ("min" | "minimum" | "minnum" | "max" | "maximum" | "maxnum"), (a, b):
                return self.extreme(op.startswith("max"), self.form(a), self.form(b))
            case "select", (_, a, b):
                (low, high), (least, most) = self.interval(self.form(a)), self.interval(self.form(b))
                return self.symbol((min(low, least), max(high, most)))
            case "mul", (a, b):
                (low, high), (least, most) = self.interval(self.form(a)), self.interval(self.form(b))
                corners = [x * y for x in (low, high) for y in (least, most)]
                return self.symbol((min(corners), max(corners)))
            case "clz", _:
                return self.symbol((0, LIMITS[type.dtype][1].bit_length() + 1))
        return self.unknown(type)

    def lane(self, lanes: int) -> LinearForm:
        self.intervals.setdefault(LANE + lanes, (0, lanes - 1))
        return LinearForm({LANE + lanes: 1})

    def by_constant(self, type: Type, op: str, x: Operand, n: int) -> LinearForm:
        """Return x op n."""
        form = self.form(x)
        low, high = self.interval(form)
        match op:
            case "mul":
                return form.times(n)
            case "shl" if 0 <= n < 64:
                return form.times(1 << n)
            case "and" if n >= 0:
                if low >= 0 and high <= n and n & (n + 1) == 0:
                    return form
                return self.symbol((0, min(high, n) if low >= 0 else n), *([(-1, form)] if low >= 0 else []))
            case "ashr" | "lshr" | "div" if low >= 0 <= n and (n < 64 or op == "div"):
                if by := n if op == "div" else 1 << n:
                    return self.symbol((low // by, high // by), *quotient(form, by))
            case "div" if n > 0:
                return self.truncated(form, n)
        return self.unknown(type)

    def truncated(self, form: LinearForm, by: int) -> LinearForm:
        """Return the quotient of a form that may be negative, rounded towards 0."""
        low, high = (n // by if n >= 0 else -(-n // by) for n in self.interval(form))
        found = self.symbol((low, high), (-by, form.moved(by - 1)), (by, form.times(-1).moved(by - 1)))
        (number,) = found.terms
        self.quotients[number] = form, by
        return found

    def extreme(self, largest: bool, a: LinearForm, b: LinearForm) -> LinearForm:
        (low, high), (least, most) = self.closest(a), self.closest(b)
        if (low >= most) if largest else (high <= least):
            return a
        if (least >= high) if largest else (most <= low):
            return b
        if largest:
            return self.symbol((max(low, least), max(high, most)), (1, a.times(-1)), (1, b.times(-1)))
        return self.symbol((min(low, least), min(high, most)), (-1, a), (-1, b))

    # ---- bounds ------------------------------------------------------------------------------------------------------
    def interval(self, form: LinearForm) -> Interval:
        """Return bounds from each symbol's interval alone."""
        low = high = form.const
        for s, c in form.terms.items():
            least, most = self.intervals[s]
            low, high = (low + c * least, high + c * most) if c > 0 else (low + c * most, high + c * least)
        return low, high

    def closest(self, form: LinearForm) -> Interval:
        """Return bounds from facts, too, where facts can be tighter than intervals: for a form of several symbols."""
        return (self.least(form), -self.least(form.times(-1))) if len(form.terms) > 1 else self.interval(form)

    def least(self, form: LinearForm, facts: Facts = NO_FACTS) -> int:
        """Return a lower bound of the form; the facts hold in addition to those that always hold."""
        return self.found_least(form, facts, {})

    def found_least(self, form: LinearForm, facts: Facts, found: dict[tuple, int]) -> int:
        """Return `least`, memoized in `found`: many facts lead to the same forms."""
        if not form.terms:
            return form.const
        symbols = sorted(form.terms.items())
        key = (form.const, *symbols)
        if (known := found.get(key)) is not None:
            return known
        newest, c = symbols[-1]
        rest = {s: k for s, k in form.terms.items() if s != newest}
        low, high = self.intervals[newest]
        best = self.found_least(LinearForm(rest, form.const + c * (low if c > 0 else high)), facts, found)
        for k, other in [*self.known_of(newest, facts, found), *facts.get(newest, ())]:
            if (k > 0) == (c > 0):  # |k| form >= |k| rest - |c| other
                scale = abs(k)
                bound = LinearForm(rest, form.const).times(scale).plus(other, -abs(c))
                best = max(best, -(-self.found_least(bound, facts, found) // scale))
        found[key] = best
        return best

    def known_of(self, symbol: int, facts: Facts, found: dict[tuple, int]) -> Sequence[tuple[int, LinearForm]]:
        """Return the facts about a symbol that always hold, and more about a quotient if `facts` prove its dividend not
        negative."""
        known = self.facts.get(symbol, [])
        if symbol in self.quotients:
            form, by = self.quotients[symbol]
            if self.found_least(form, facts, found) >= 0:
                return [*known, (1, LinearForm({})), *quotient(form, by)]
        return known

    def span(self, x: Operand) -> Interval:
        """Return the interval of a value."""
        if isinstance(x, Literal):
            return int(x.value), int(x.value)
        known = self.spans.get(x)
        if known is None:
            known = self.spans[x] = self.interval(self.form(x))
        return known

    # ---- conditions --------------------------------------------------------------------------------------------------
    def conditions(self, x: Operand) -> list[LinearForm]:
        """Return forms that are not negative where x is true."""
        match self.definitions.get(x) if isinstance(x, Var) else None:
            case Let(_, "and", (a, b)) if x.type.dtype == "bool":
                return self.conditions(a) + self.conditions(b)
            case Let(_, "splat", (a,)):
                return self.conditions(a)
            case Let(_, ("lt" | "le" | "eq") as op, (a, b)) if a.type.dtype in LIMITS:
                difference = self.form(b).plus(self.form(a), -1)
                if op == "eq":
                    return [difference, difference.times(-1)]
                return [difference.moved(-1) if op == "lt" else difference]
        return []

    def cases(self, x: Operand, holds: bool = True) -> list[list[LinearForm]]:
        """Return cases: where x is true (or false, by `holds`), all forms of at least one case are not negative."""
        match self.definitions.get(x) if isinstance(x, Var) and x.type.dtype == "bool" else None:
            case Let(_, "xor", (a, Literal(value=1))):
                return self.cases(a, not holds)
            case Let(_, "and", (a, b)) if holds:
                both = [first + second for first in self.cases(a) for second in self.cases(b)]
                return both if len(both) <= MAX_CASES else [self.conditions(x)]
            case Let(_, "and", (a, b)):
                return self.cases(a, False) + self.cases(b, False)
            case Let(_, "splat", (a,)):
                return self.cases(a, holds)
            case Let(_, ("lt" | "le") as op, (a, b)) if a.type.dtype in LIMITS and not holds:
                difference = self.form(a).plus(self.form(b), -1)
                return [[difference.moved(-1) if op == "le" else difference]]
        return [self.conditions(x) if holds else []]


def quotient(form: LinearForm, by: int) -> tuple[tuple[int, LinearForm], tuple[int, LinearForm]]:
    """Return the facts about the quotient of a form that is not negative."""
    return (-by, form), (by, form.times(-1).moved(by - 1))


def by_newest(forms: Iterable[LinearForm], outer: Facts = NO_FACTS) -> Facts:
    """Return facts for `least`: forms that are not negative, in addition to the outer facts."""
    facts = {s: list(known) for s, known in outer.items()}
    for form in forms:
        if form.terms:
            newest = max(form.terms)
            rest = LinearForm({s: k for s, k in form.terms.items() if s != newest}, form.const)
            facts.setdefault(newest, []).append((form.terms[newest], rest))
    return facts
