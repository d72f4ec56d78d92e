"""Elementwise NumPy functions by name: operands are promoted, broadcast and converted to the type of NumPy's loop, the formula
is recorded, and its results have the loop's types."""
from __future__ import annotations

from typing import Any

from ...lowering.formulas.term import Term
from ...lowering.graph.types import ElementType
from .conversion import broadcast, converted, operands, tensor
from .formulas_of_numpy import FORMULAS, Formula, Formulas
from .promotion import Loop
from .promotion import loop as loop_of
from .tensor import Tensor
from .trace import problem, recorded_all


def elementwise(name: str, *values: Any) -> Tensor:
    """Return the one result of `numpy.NAME`."""
    return results(name, *values)[0]


def results(name: str, *values: Any) -> tuple[Tensor, ...]:
    """Return the results of `numpy.NAME` on operands that broadcast, which may also be arrays and Python numbers."""
    given = operands(*values, operator=name)
    given = [tensor(x, rank=max(y.ndim for y in given)) for x in given]
    broadcast(*(x.shape for x in given), operator=name)
    return of_loop(name, FORMULAS[name], given)


def of_loop(name: str, formulas: Formulas, given: list[Tensor]) -> tuple[Tensor, ...]:
    """Record the formula on operands of one rank, converted to the types of the function's loop."""
    inputs, outputs = checked_loop(name, given)
    formula = formulas.of(inputs[0])
    if formula is None:
        raise problem(f"{name} does not take {' and '.join(dict.fromkeys(str(x.element) for x in given))}")
    working = [formulas.working(element) for element in inputs]
    return recorded_as(formula, [converted(converted(x, e), w) for x, e, w in zip(given, inputs, working)], outputs)


def checked_loop(name: str, given: list[Tensor]) -> Loop:
    found = loop_of(name, tuple(x.element for x in given))
    if isinstance(found, str):
        kinds = " and ".join(dict.fromkeys(str(x.element) for x in given))
        raise problem(f"{name} does not take {kinds}, as NumPy's does not", help=found)
    return found


def recorded_as(formula: Formula, given: list[Tensor], outputs: tuple[ElementType, ...]) -> tuple[Tensor, ...]:
    """Record a formula of terms and return its results in these types."""
    def cast(*terms: Term) -> tuple[Term, ...]:
        found = formula(*terms)
        parts = found if isinstance(found, tuple) else (found,)
        return tuple(part.cast(element) for part, element in zip(parts, outputs, strict=True))
    return recorded_all(cast, *given)
