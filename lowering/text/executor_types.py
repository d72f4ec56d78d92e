"""The types of an executor operation's results, completed where its text leaves them out.

`: (types) -> types` says all, `: T` only the type of the data. A control result that the text does not mention, as in the
design document, is added in the custom form, where it is implicit; the generic form (a quoted name) is taken at its word.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..dialects.tf_executor.operators import (
    ControlTrigger,
    ExecutorOp,
    Merge,
    NextIterationSink,
    NextIterationSource,
    Switch,
    SwitchN,
)
from ..dialects.tf_executor.types import CONTROL, INDEX_TYPE, TOKEN, is_data
from ..graph.graph import Value
from ..graph.types import Type
from .syntax import OperationSyntax, place

if TYPE_CHECKING:
    from .operations import OperationReader

MOST_OUTPUTS = 10_000


def node_types(reader: OperationReader, syntax: OperationSyntax, operator: type[ExecutorOp] | None,
               operands: tuple[Value, ...]) -> tuple[Type, ...]:
    """The types of all results. The operands are held against their types in the text."""
    if syntax.types.signature is not None:
        _, results = reader.operands(syntax)
        return completed(syntax, operator, results)
    written = tuple(map(reader.types.value, syntax.types.results))
    if operator is None:
        return (*written, CONTROL)
    if len(written) > 1:
        raise Problem(f"{syntax.spelling} has one type behind its colon, found {len(written)}",
                      place(reader.source, syntax.types.results[1]), kind="executor")
    data = written[0] if written else None
    check_data(reader, syntax, operator, operands, data)
    return short_form(reader, syntax, operator, operands, data)


def completed(syntax: OperationSyntax, operator: type[ExecutorOp] | None, results: tuple[Type, ...]) -> tuple[Type, ...]:
    """The results of a signature, with the control that the custom form need not mention, nor the index of a Merge."""
    if syntax.name.startswith('"') or operator is NextIterationSink:
        return results
    data = results[:-1] if results and results[-1] == CONTROL else results
    return (*data, INDEX_TYPE, CONTROL) if operator is Merge and len(data) == 1 else (*data, CONTROL)


def short_form(reader: OperationReader, syntax: OperationSyntax, operator: type[ExecutorOp], operands: Sequence[Value],
               data: Type | None) -> tuple[Type, ...]:
    """The results where the text has the type of the data only."""
    if operator is ControlTrigger:
        return (CONTROL,)
    if operator is NextIterationSink:
        return ()
    if data is None:
        raise Problem(f"{syntax.spelling} needs ':' and the type of its data", kind="syntax")
    if operator is Switch:
        return data, data, CONTROL
    if operator is SwitchN:
        return (data,) * outputs(reader, syntax) + (CONTROL,)
    if operator is Merge:
        return data, INDEX_TYPE, CONTROL
    if operator is NextIterationSource:
        return data, TOKEN, CONTROL
    return data, CONTROL


def outputs(reader: OperationReader, syntax: OperationSyntax) -> int:
    """`of 3`"""
    for inline in syntax.inline:
        if inline.name == "num_outs":
            value = getattr(reader.attributes.read(inline.value), "value", None)
            if isinstance(value, int) and 0 < value <= MOST_OUTPUTS:
                return value
            raise Problem(f"{syntax.spelling} has from 1 to {MOST_OUTPUTS} outputs, found {value}",
                          place(reader.source, inline.value.token), kind="executor")
    raise Problem(f"{syntax.spelling} needs the number of its outputs, as in `of 3`", kind="executor")


def check_data(reader: OperationReader, syntax: OperationSyntax, operator: type[ExecutorOp], operands: Sequence[Value],
               data: Type | None) -> None:
    """The operands have the one type of the text, predicates and indices aside; its form needs nothing else."""
    if data is None:
        return
    if not is_data(data):
        raise Problem(f"{syntax.spelling} has the type of its data behind the colon, not {data}",
                      place(reader.source, syntax.types.results[0]), kind="executor")
    of_type = [v for v in operands if is_data(v.type)]
    if operator is Switch:  # the predicate may stand first
        of_type = [] if any(v.type == data for v in of_type[:2]) else of_type[:1]
    for value in of_type[:1] if operator is SwitchN else of_type:
        if value.type != data:
            raise Problem(f"{syntax.spelling} has data of type {data}, but %{value.name} is a {value.type}",
                          place(reader.source, syntax.types.results[0]), kind="executor")
