"""The types in which formulas compute: half floats in f32, rounded once at the end, narrow integers in i32, other unsigned
integers in i64, where sums and products of ui64 have the same bits."""
from __future__ import annotations

import inspect
from collections.abc import Sequence

from ...runtime.errors import Problem
from ..graph.graph import Value
from ..graph.types import F32, I1, I32, I64, ElementType
from .term import PRECISIONS, Function, Term
from .tosa_builder import TosaBuilder, is_narrow


def working_type(element: ElementType, integers: bool, floats: bool) -> ElementType:
    """Return the type in which a formula computes for operands of that type."""
    if floats and element.is_float:
        return element if element in PRECISIONS else F32
    if integers and element.is_integer:
        return I32 if is_narrow(element) else I64 if element.kind == "unsigned" else element
    kinds = " or ".join(kind for kind, wanted in (("floats", floats), ("integers", integers)) if wanted)
    raise Problem(f"it takes {kinds}, not {element}", kind="type")


def evaluated(function: Function, e: TosaBuilder, operands: Sequence[Value], integers: bool = False,
              floats: bool = True) -> Value:
    """Return a function of terms of these operands, which are of one type, computed in the working type; bools stay bools."""
    check_count(function, operands)
    element = operands[0].tensor.element
    working = working_type(element, integers, floats)
    given = e.same_rank(*(e.cast(x, working) for x in operands))
    found = function(*(Term(e, x) for x in given)).value
    return found if found.tensor.element == I1 else e.cast(found, element)


def check_count(function: Function, operands: Sequence[Value]) -> None:
    """Check that there are as many operands as the function has parameters."""
    wanted = list(inspect.signature(function).parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in wanted):
        wanted = []
    if not operands or (wanted and len(wanted) != len(operands)):
        raise Problem(f"it takes {len(wanted) or 'some'} operands, not {len(operands)}", kind="type")
