"""Variables of the reference interpreter: a literal, independent implementation of TOSA's rules for stateful operators.

A run works on a copy of the states, `RunVariables`, which replaces the old ones at the end of the run: a run that fails changes
no variable. Compiled programs keep their variables elsewhere, so that one can check the other.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import Problem

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class VariableState:
    """A variable between two operations. `value` is read-only; it has no meaning before the variable is written."""
    type: Any
    value: Array
    is_written: bool


@dataclass(slots=True)
class InterpreterVariables:
    """Variables by name, for runs of one thread. Programs with the same object share them."""
    states: dict[str, VariableState] = field(default_factory=dict)

    def snapshot(self) -> dict[str, Array | None]:
        """Return a copy of every variable, None for one that is not written yet."""
        return {name: s.value.copy() if s.is_written else None for name, s in self.states.items()}


class RunVariables:
    """The variables during one run, and the set of those that it has declared."""

    def __init__(self, variables: InterpreterVariables) -> None:
        self.states = dict(variables.states)
        self._seen: set[str] = set()

    def declare(self, symbol: str, type: Any, initial: Array | None) -> None:
        """Execute VARIABLE: the first declaration allocates and copies the initial value; one run declares a name once."""
        if symbol in self._seen:
            raise Problem(f"tosa.variable declares @{symbol} for the second time in one run", kind="variable",
                          help="give one of the variables another name")
        if symbol not in self.states:
            if type.shape is None or None in type.shape:
                raise Problem(f"variable @{symbol} is {type}: its shape must be known", kind="unsupported")
            value = np.zeros(type.shape, type.element.dtype)
            if initial is not None:
                value[...] = initial
            self.states[symbol] = frozen(type, value, initial is not None)
        self._seen.add(symbol)

    def read(self, symbol: str, type: Any) -> Array:
        """Execute VARIABLE_READ: the variable must be declared, by any run, written, and of the type that is read."""
        state = self._declared(symbol, "read")
        if not state.is_written:
            raise Problem(f"variable @{symbol} is read before it is written", kind="variable",
                          help="give it an initial value, or write it first")
        if stored(type) != stored(state.type) or not fits(type.shape, state.value.shape):
            raise Problem(f"variable @{symbol} is {state.type}, it is read as {type}", kind="variable")
        return state.value

    def write(self, symbol: str, value: Array, type: Any) -> None:
        """Execute VARIABLE_WRITE: the variable must be declared, by this run, and of the value's type."""
        state = self._declared(symbol, "written")
        if symbol not in self._seen:
            raise Problem(f"variable @{symbol} is written in a run that does not declare it", kind="variable",
                          help="declare it with tosa.variable")
        if stored(type) != stored(state.type) or value.shape != state.value.shape:
            raise Problem(f"variable @{symbol} is {state.type}, what is written is {type}", kind="variable")
        self.states[symbol] = frozen(state.type, np.array(value, order="C"), True)

    def _declared(self, symbol: str, what: str) -> VariableState:
        if symbol not in self.states:
            raise Problem(f"variable @{symbol} is {what}, but nothing declares it", kind="variable",
                          help="declare it with tosa.variable")
        return self.states[symbol]


def stored(type: Any) -> Any:
    """Return the element type that stores a variable of that type: quantization does not affect storage."""
    return getattr(type.element, "stored", type.element)


def frozen(type: Any, value: Array, is_written: bool) -> VariableState:
    value.flags.writeable = False
    return VariableState(type, value, is_written)


def fits(shape: Sequence[int | None] | None, actual: Sequence[int]) -> bool:
    """True if a shape with unknown extents can be the actual one."""
    return shape is None or (len(shape) == len(actual) and all(n is None or n == m for n, m in zip(shape, actual)))
