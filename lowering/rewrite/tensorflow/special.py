"""The table of operations that are more than a function of their operands: control flow, calls, variables, executor graphs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...dialects.tf.legalizations.data import Datum
from ...graph.graph import Operation, Value

if TYPE_CHECKING:
    from .translate import Translation

Scope = dict[Value, Datum]
"""What the values of TensorFlow's graph are in the new one."""
Special = Callable[["Translation", Operation, list[Datum], Scope], Sequence[Datum]]
SPECIAL: dict[str, Special] = {}


def special(*names: str) -> Callable[[Special], Special]:
    """The function translates these operations."""
    def add(function: Special) -> Special:
        SPECIAL.update(dict.fromkeys(names, function))
        return function
    return add
