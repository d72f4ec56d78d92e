"""The table of legalizations, its registration function, and the calls of legalizations.

The types of a legalization's parameters declare its operands: a `Value` is a tensor of numbers, any other type may be a handle
or a list, too.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .....runtime.errors import Problem
from ....graph.foreign import spelling
from ....graph.graph import Value
from ...data import ComplexTensor, Datum, described
from .complex_numbers import of_complex_numbers, takes_complex

if TYPE_CHECKING:
    from ....graph.graph import Operation
    from ...emitter import Emitter

Legalization = Callable[..., Any]
"""(emitter, operation, *operands) -> the one result, or a tuple of results."""
LEGALIZATIONS: dict[str, Legalization] = {}


def legalization(*names: str) -> Callable[[Legalization], Legalization]:
    """Register the function as the legalization of these operations."""
    def add(function: Legalization) -> Legalization:
        for name in names:
            assert name not in LEGALIZATIONS, f"{name} has two legalizations"
            LEGALIZATIONS[name] = function
        return function
    return add


def legalized(found: Legalization, e: Emitter, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
    """Return the results of an operation; raise a Problem if its operands are not those that the legalization takes."""
    name = spelling(operation)
    complex_numbers = takes_complex(name, operands)
    kinds, least, most = parameters(found)
    if not least <= len(operands) <= most:
        raise Problem(f"{len(operands)} operands are not what it takes", kind="type", help=f"it takes {least}" + (
            "" if most == least else " or more" if most > 99 else f" to {most}"))
    for number, operand in enumerate(operands):
        if kinds[min(number, len(kinds) - 1)] == "Value" and not isinstance(operand, Value):
            if isinstance(operand, ComplexTensor):
                if complex_numbers:
                    continue
                raise operand.problem
            raise Problem(f"operand {number} is {described(operand)}, not a tensor of numbers", kind="type")
    try:
        results = (of_complex_numbers(name, found, e, operation, operands) if complex_numbers else
                   found(e, operation, *operands))
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise unfit(operands, error) from error
    return results if isinstance(results, tuple) else (results,)


def unfit(operands: Sequence[Datum], error: Exception) -> Problem:
    """Return the Problem of ranks, shapes or numbers that an operation's formulas fail on because the operation does not take
    them."""
    given = ", ".join(map(described, operands)) or "nothing"
    return Problem(f"operands that are {given} do not fit together or to its attributes: {error}", kind="shape")


@functools.cache
def parameters(found: Legalization) -> tuple[tuple[str, ...], int, int]:
    """Return the annotation of each operand, and the minimum and maximum number of operands."""
    own = list(inspect.signature(found).parameters.values())[2:]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in own)
    needed = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in own)
    return tuple(str(p.annotation) for p in own), needed, 1 << 30 if open_ended else len(own)
