"""The table of operations that are more than a function of their operands: control flow, calls, variables, executor graphs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...dialects.data import Datum
from ...graph.graph import Operation, Value

if TYPE_CHECKING:
    from .translate import Translation

Scope = dict[Value, Datum]
"""The data in the new graph of the values of TensorFlow's graph."""
Special = Callable[["Translation", Operation, list[Datum], Scope], Sequence[Datum]]
SPECIAL: dict[str, Special] = {}
TOSA = "tosa.*"
"""Key of the table for every operator of TOSA."""


def special(*names: str, operands: int = 0, regions: int = 0, results: int = 0) -> Callable[[Special], Special]:
    """Register the function for these operations, which have at least these numbers of operands, regions and results."""
    def add(function: Special) -> Special:
        def checked(t: Translation, operation: Operation, given: list[Datum], scope: Scope) -> Sequence[Datum]:
            if len(given) < operands:
                raise Problem(f"it takes {operands} operands, not {len(given)}", operation.position, kind="type")
            if len(operation.regions) < regions:
                raise Problem(f"it has {regions} regions, not {len(operation.regions)}", operation.position, kind="type")
            if len(operation.results) < results:
                raise Problem(f"it has {len(operation.results)} results, not {results}", operation.position, kind="type")
            return function(t, operation, given, scope)
        SPECIAL.update(dict.fromkeys(names, checked))
        return function
    return add


def check_number(wanted: int, found: int, what: str) -> None:
    """Raise a Problem unless the number of values is the wanted one."""
    if wanted != found:
        raise Problem(f"{what} takes {wanted} values, it is given {found}", kind="type")
