"""Bits as conditions of TOSA, and the selection by them of the value that is live."""
from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....runtime.errors import Problem
from ...dialects.data import Datum, VariableHandle, described, leaves, rebuilt
from ...elements.traverse import post_order
from ...graph.graph import Value
from ..tensorflow.special import Scope
from .decision_diagrams import FALSE, TRUE, Atom, Bit, Bits

if TYPE_CHECKING:
    from ..tensorflow.translate import Translation

Known = dict[Hashable, Datum]
"""Data computed before the point of emission: values of the graph, messages, and atoms that are not values."""


class Conditions:
    """The bits of one graph, and the TOSA data of its values."""
    t: Translation
    bits: Bits
    scope: Scope

    def datum(self, value: Value, known: Known) -> Datum:
        """Return the TOSA data of a value of the graph or of its surroundings."""
        found = known.get(value) or self.scope.get(value)
        if found is None:
            raise Problem(f"%{value.name} is needed, but nothing says what it is before it is live", value.position,
                          kind="unsupported", help="its type must be known: let an Enter give a first value")
        return found

    def condition(self, bit: Bit, known: Known) -> Value:
        """Return a bit as one bool of TOSA."""
        if bit in (FALSE, TRUE):
            return self.t.emitter.constant(np.array(bit == TRUE))
        here: dict[Bit, Value] = {}

        def below(f: Bit) -> list[Bit]:
            atom, low, high = self.bits.top(f)
            value = self.atom(atom, known)
            here[f] = self.t.emitter("logical_not", value) if low == TRUE or high == FALSE else value
            return [x for x in (high, low) if x not in (FALSE, TRUE)]

        found: dict[Bit, Value] = {}
        for f in post_order((bit,), below):
            found[f] = self.combined(f, here[f], found)
        return found[bit]

    def combined(self, bit: Bit, here: Value, found: Mapping[Bit, Value]) -> Value:
        """Return a bit computed from its outermost atom (`here`, perhaps negated) and the functions below it."""
        _, low, high = self.bits.top(bit)
        match low in (FALSE, TRUE), high in (FALSE, TRUE):
            case True, True:
                return here
            case True, False:
                return self.t.emitter("logical_and" if low == FALSE else "logical_or", here, found[high])
            case False, True:
                return self.t.emitter("logical_and" if high == FALSE else "logical_or", here, found[low])
        return self.t.emitter("select", here, found[high], found[low])

    def atom(self, atom: Atom, known: Known) -> Value:
        t = self.t.emitter
        match atom.kind, atom.key:
            case "value", Value() as value:
                return t.is_true(self.tensor(value, known))
            case "case", (Value() as index, int(number)):
                found = self.tensor(index, known)
                return t("equal", found, t.constant(np.array(number, found.tensor.element.dtype)))
            case _:
                found = known.get(atom)  # type: ignore[assignment]
                assert isinstance(found, Value), f"{atom} is not known"
                return found

    def tensor(self, value: Value, known: Known) -> Value:
        found = self.datum(value, known)
        if not isinstance(found, Value):
            raise Problem(f"a predicate is {described(found)}, not a tensor", kind="type")
        return found

    def first(self, choices: Sequence[tuple[Bit, Datum]], known: Known) -> Datum:
        """Return the datum of the first choice whose bit holds; one bit always holds."""
        *others, (_, found) = choices
        for bit, datum in reversed(others):
            found = self.selected(bit, datum, found, known)
        return found

    def selected(self, bit: Bit, a: Datum, b: Datum, known: Known) -> Datum:
        """Return a if a bit holds, else b."""
        if a is b or bit == TRUE:
            return a
        if isinstance(a, VariableHandle) or not leaves(a):
            if a == b:
                return a
            raise Problem(f"{described(a)} or {described(b)}, as it turns out when running: that cannot be compiled",
                          kind="unsupported")
        pairs = list(zip(leaves(a), leaves(b), strict=True))
        for x, y in pairs:
            if x.type != y.type:
                raise Problem(f"a Merge has inputs of the types {x.type} and {y.type}", kind="unsupported",
                              help="they must have one shape to be compiled")
        condition = self.condition(bit, known)
        return rebuilt(a, tuple(self.t.emitter.select(condition, x, y) for x, y in pairs))
