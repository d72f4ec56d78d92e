"""Boolean functions of conditions, as reduced ordered binary decision diagrams: equal functions have the same number.

Variables (`Atom`s) are ordered by creation, so that the top one of a function is the outermost condition. Bryant, 1986;
`restrict` is Coudert's and Madre's. No walk is recursive: a graph may have very many conditions.
"""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from ....runtime.records import dataclass
from ...elements.traverse import post_order

Bit = int
FALSE: Bit = 0
TRUE: Bit = 1


@dataclass(frozen=True, slots=True)
class Atom:
    """A condition that is only known at run time. `kind` tells what `key` is: "value" a condition's value, "case" a pair of an
    index and the number it is compared with, "first" a frame, "source" a Source, "latched" an Exit."""
    kind: str
    key: Hashable


Key = tuple[Bit, Bit, Bit]
Pair = tuple[Bit, Bit]


class DiagramNode(NamedTuple):
    """A decision: `high` if variable number `variable` is true, else `low`."""
    variable: int
    low: Bit
    high: Bit


class Bits:
    """The Boolean functions of one graph."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}
        self._nodes: list[DiagramNode] = [DiagramNode(1 << 30, 0, 0), DiagramNode(1 << 30, 1, 1)]
        self._known: dict[DiagramNode, Bit] = {}
        self._choices: dict[Key, Bit] = {}

    def atom(self, atom: Atom) -> Bit:
        """Return the function that equals the atom."""
        if atom not in self._numbers:
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return self._node(self._numbers[atom], FALSE, TRUE)

    def top(self, f: Bit) -> tuple[Atom, Bit, Bit]:
        """Return the outermost atom of a function that is not constant, and its cofactors for a false and a true atom."""
        node = self._nodes[f]
        return self.atoms[node.variable], node.low, node.high

    def _node(self, variable: int, low: Bit, high: Bit) -> Bit:
        if low == high:
            return low
        node = DiagramNode(variable, low, high)
        if node not in self._known:
            self._known[node] = len(self._nodes)
            self._nodes.append(node)
        return self._known[node]

    def choice(self, f: Bit, g: Bit, h: Bit) -> Bit:
        """Return the function "if f then g else h"."""
        if (found := self._decided(f, g, h)) is not None:
            return found
        for key in post_order(((f, g, h),), self._sides):
            if key not in self._choices:
                low, high = (self._decided(*side) for side in self._halves(key))
                assert low is not None and high is not None
                self._choices[key] = self._node(self._top(key), low, high)
        return self._choices[f, g, h]

    def _decided(self, f: Bit, g: Bit, h: Bit) -> Bit | None:
        """Return `choice` if it is known already, else None."""
        if f in (FALSE, TRUE):
            return g if f else h
        if g == h:
            return g
        return f if (g, h) == (TRUE, FALSE) else self._choices.get((f, g, h))

    def _top(self, key: tuple[Bit, ...]) -> int:
        return min([self._nodes[n].variable for n in key])

    def _halves(self, key: Key) -> tuple[Key, Key]:
        """Return the cofactors of a choice for a false and a true outermost variable."""
        (f, g, h), top = key, self._top(key)
        low, high = ((self._side(f, top, side), self._side(g, top, side), self._side(h, top, side)) for side in (False, True))
        return low, high

    def _sides(self, key: Key) -> list[Key]:
        """Return the cofactors that must be decided before a choice."""
        return [side for side in self._halves(key) if self._decided(*side) is None]

    def _side(self, f: Bit, variable: int, side: bool) -> Bit:
        node = self._nodes[f]
        return f if node.variable != variable else node.high if side else node.low

    def conjunction(self, *bits: Bit) -> Bit:
        found = TRUE
        for bit in bits:
            found = self.choice(found, bit, FALSE)
        return found

    def disjunction(self, *bits: Bit) -> Bit:
        found = FALSE
        for bit in bits:
            found = self.choice(found, TRUE, bit)
        return found

    def negation(self, f: Bit) -> Bit:
        return self.choice(f, FALSE, TRUE)

    def implies(self, f: Bit, g: Bit) -> bool:
        return self.conjunction(f, self.negation(g)) == FALSE

    def restrict(self, f: Bit, care: Bit) -> Bit:
        """Return a function that equals f where `care` is true, and is as simple as possible elsewhere."""
        known: dict[Pair, Bit] = {}
        for pair in post_order(((f, care),), self._inside):
            known[pair] = self._restricted(pair, known)
        return known[f, care]

    def _inside(self, pair: Pair) -> list[Pair]:
        """Return the restrictions that `pair` depends on: none if it is decided, one if it equals another restriction, or
        two."""
        f, care = pair
        if care in (FALSE, TRUE) or f in (FALSE, TRUE):
            return []
        of, inside = self._nodes[f], self._nodes[care]
        if inside.variable < of.variable:
            return [(f, self.disjunction(inside.low, inside.high))]
        low, high = (self._side(care, of.variable, side) for side in (False, True))
        return [half for half in ((of.low, low), (of.high, high)) if half[1] != FALSE]

    def _restricted(self, pair: Pair, known: Mapping[Pair, Bit]) -> Bit:
        """Return a restriction computed from the restrictions that it depends on."""
        f, care = pair
        if care == FALSE:
            return FALSE
        match [known[half] for half in self._inside(pair)]:
            case [low, high]:
                return self._node(self._nodes[f].variable, low, high)
            case [only]:
                return only
        return f

    def support(self, f: Bit) -> set[Atom]:
        """Return the atoms that a function depends on."""
        found: set[Atom] = set()
        seen: set[Bit] = {FALSE, TRUE}
        waiting = [f]
        while waiting:
            bit = waiting.pop()
            if bit not in seen:
                seen.add(bit)
                node = self._nodes[bit]
                found.add(self.atoms[node.variable])
                waiting += (node.low, node.high)
        return found
