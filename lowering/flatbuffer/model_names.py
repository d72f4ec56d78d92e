"""What a model calls its tensors, for a .tosa file: viewers show their names there, and a value that an importer made is only a
number. The names are those at the positions of operations: the tensors of a `.tflite` and of ONNX, MLIR's `loc("name")`.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

from ..graph.graph import Block, Function, Operation, Value, captures
from ..graph.result_names import name_of_result
from ..text.attribute_printer import quoted
from ..text.printer import as_identifier

NUMBER = re.compile(r"[0-9]+(?:_[0-9]+)*")
"""What values are called that nobody has named."""


def location(operation: Operation) -> str:
    """An operation's location as MLIR writes it, or one of what the model calls the operation's result."""
    name = operation.position.name if operation.position else None
    return operation.location or (f"loc({quoted(name)})" if name else "")


def result_names(function: Function) -> dict[Value, str]:
    """What callers know the results of a function by, of those that it computes and that are only numbers."""
    found: dict[Value, str] = {}
    for value, attributes in zip(function.body.yields, function.result_attributes):
        name = name_of_result(attributes)
        if name and is_called(value, name):
            found.setdefault(value, name)
    return found


def tensor_names(block: Block) -> dict[Value, str]:
    """What the model calls tensors that the operations of a block compute.

    Several operations may stand for one of the model's: its tensor is then what all others use of them, if that is one value,
    and a constant where they compute nothing.
    """
    groups: dict[str, list[Operation]] = {}
    for operation in block.operations:
        if operation.position and operation.position.name and len(operation.results) == 1:
            groups.setdefault(operation.position.name, []).append(operation)
    users: dict[Value, set[Operation]] = {}
    for operation in block.operations:
        for value in (*operation.operands, *captures(operation)):
            users.setdefault(value, set()).add(operation)
    own = {v.name for v in (*block.arguments, *(v for o in block.operations for v in o.results))}
    found = ((name, tensor_of(operations, users, block.yields)) for name, operations in groups.items())
    return {value: name for name, value in found
            if value is not None and is_called(value, name) and (name not in own or name == value.name)}


def tensor_of(operations: Sequence[Operation], users: dict[Value, set[Operation]], yields: Sequence[Value]) -> Value | None:
    """The only value that operations give to others."""
    computed = [o for o in operations if o.results[0].constant is None] or operations
    given = [o.results[0] for o in computed if o.results[0] in yields or users.get(o.results[0], set()) - {*operations}]
    return given[0] if len(given) == 1 else None


def is_called(value: Value, name: str) -> bool:
    """True if a value may be called so: it is a number, or what text writes in place of a name that it cannot write, so that a
    file which became text has its names again when it is a file."""
    written = as_identifier(name)
    return bool(NUMBER.fullmatch(value.name)) or (
        written != name and re.fullmatch(rf"{re.escape(written)}(?:_[0-9]+)?", value.name) is not None)
