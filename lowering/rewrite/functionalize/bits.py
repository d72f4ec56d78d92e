"""Boolean functions of conditions, as reduced ordered binary decision diagrams: equal functions are the same number.

Variables (`Atom`s) are ordered as they are made, so that the top one of a function is the outermost condition. Bryant, 1986;
`restrict` is Coudert's and Madre's.
"""
from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ....runtime.records import dataclass

Bit = int
FALSE: Bit = 0
TRUE: Bit = 1


@dataclass(frozen=True, slots=True)
class Atom:
    """A condition that is only known when running. `kind` says what `key` is: "value" a condition's value, "case" a pair of an
    index and the number it is compared with, "first" a frame, "source" a Source, "latched" an Exit."""
    kind: str
    key: Hashable


class Node(NamedTuple):
    """`high` where variable number `variable` is true, else `low`."""
    variable: int
    low: Bit
    high: Bit


class Bits:
    """The functions of one graph."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}
        self._nodes: list[Node] = [Node(1 << 30, 0, 0), Node(1 << 30, 1, 1)]
        self._known: dict[Node, Bit] = {}
        self._choices: dict[tuple[Bit, Bit, Bit], Bit] = {}

    def atom(self, atom: Atom) -> Bit:
        """The function that is the atom."""
        if atom not in self._numbers:
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return self._node(self._numbers[atom], FALSE, TRUE)

    def top(self, f: Bit) -> tuple[Atom, Bit, Bit]:
        """The outermost atom of a function that is no constant, and what the function is where that is false and true."""
        node = self._nodes[f]
        return self.atoms[node.variable], node.low, node.high

    def _node(self, variable: int, low: Bit, high: Bit) -> Bit:
        if low == high:
            return low
        node = Node(variable, low, high)
        if node not in self._known:
            self._known[node] = len(self._nodes)
            self._nodes.append(node)
        return self._known[node]

    def choice(self, f: Bit, g: Bit, h: Bit) -> Bit:
        """g where f, else h."""
        if f in (FALSE, TRUE):
            return g if f else h
        if g == h:
            return g
        if (g, h) == (TRUE, FALSE):
            return f
        key = f, g, h
        if key not in self._choices:
            variable = min(self._nodes[n].variable for n in key)
            low, high = (self.choice(*(self._side(n, variable, side) for n in key)) for side in (False, True))
            self._choices[key] = self._node(variable, low, high)
        return self._choices[key]

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
        """A function that is f where `care` is true, and as simple as it can be elsewhere."""
        if care == FALSE:
            return FALSE
        if care == TRUE or f in (FALSE, TRUE):
            return f
        of, inside = self._nodes[f], self._nodes[care]
        if inside.variable < of.variable:
            return self.restrict(f, self.disjunction(inside.low, inside.high))
        variable = of.variable
        low, high = self._side(care, variable, False), self._side(care, variable, True)
        if low == FALSE:
            return self.restrict(of.high, high)
        if high == FALSE:
            return self.restrict(of.low, low)
        return self._node(variable, self.restrict(of.low, low), self.restrict(of.high, high))

    def support(self, f: Bit) -> set[Atom]:
        """The atoms that a function depends on."""
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
