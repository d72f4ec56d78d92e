"""Joint feasibility of conditions: a search for integers that satisfy all of them. The search is for the few accesses that
bounds alone put out of range: an access that never happens, because no lane satisfies its mask, is no fault.

Each symbol has an interval; every fact narrows the intervals of its symbols, until nothing changes. Then the search tries each
number of the smallest interval. Conditions that a few steps do not refute count as feasible.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from .ranges import Facts, Interval, LinearForm, Ranges, by_newest

MAX_TRIED_NUMBERS = 1000
"""Maximum number of integers tried: lanes of a vector times iterations of a few short loops."""
MAX_NARROWING_ROUNDS = 30
"""Maximum number of rounds in which all facts narrow the intervals: each narrows little where two loops' bounds depend on each
other."""
Domains = Mapping[int, Interval]


def can_be(ranges: Ranges, forms: Iterable[LinearForm], outer: Facts) -> bool:
    """True if the search does not rule out that the forms and the facts about their symbols are all 0 or more."""
    facts = [*forms, *[whole(s, fact) for s, known in outer.items() for fact in known]]
    given = by_newest(facts)
    domains: dict[int, Interval] = {}
    for form in facts:  # the list grows: facts about a symbol have other symbols
        for s in form.terms:
            if s not in domains:
                domains[s] = ranges.intervals[s]
                facts += [whole(s, fact) for fact in ranges.known_of(s, given, {})]
    return FeasibilitySearch(facts).finds(domains)


def whole(symbol: int, fact: tuple[int, LinearForm]) -> LinearForm:
    return fact[1].plus(LinearForm({symbol: fact[0]}))


class FeasibilitySearch:
    """A search for integers that satisfy all facts."""

    def __init__(self, facts: list[LinearForm]) -> None:
        self.facts, self.tried = facts, 0

    def finds(self, domains: Domains) -> bool:
        self.tried += 1
        narrow = self.narrowed(domains)
        if narrow is None:
            return False
        open = {s: high - low for s, (low, high) in narrow.items() if low < high}
        if not open:
            return True
        symbol = min(open, key=lambda s: (open[s], s))
        if open[symbol] + self.tried >= MAX_TRIED_NUMBERS:
            return True
        low, high = narrow[symbol]
        return any(self.finds({**narrow, symbol: (n, n)}) for n in range(low, high + 1))

    def narrowed(self, domains: Domains) -> Domains | None:
        """Return the narrowed intervals; None if one is empty."""
        found = dict(domains)
        for _ in range(MAX_NARROWING_ROUNDS):
            before = dict(found)
            if any(not narrow(form, found) for form in self.facts) or any(low > high for low, high in found.values()):
                return None
            if found == before:
                break
        return found


def narrow(form: LinearForm, domains: dict[int, Interval]) -> bool:
    """Narrow the intervals so that the form can be 0 or more at each of their ends; return False if it never can."""
    most = form.const + sum(max(c * n for n in domains[s]) for s, c in form.terms.items())
    for s, c in form.terms.items():
        low, high = domains[s]
        others = most - max(c * low, c * high)  # and c * n must make up for it
        domains[s] = (max(low, -(others // c)), high) if c > 0 else (low, min(high, others // -c))
    return most >= 0


__all__ = ["can_be"]
