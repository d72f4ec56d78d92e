"""The model's names of its tensors, for a .tosa file: viewers show them, and a value that an importer made is only a number.
They are the names at the positions of operations: the tensors of a `.tflite` and of ONNX, MLIR's `loc("name")`.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

from ..graph.graph import Block, Function, Operation, Value, captures
from ..graph.result_names import name_of_result
from ..text.attribute_printer import quoted
from ..text.printer import as_identifier

NUMBER = re.compile(r"[0-9]+(?:_[0-9]+)*")
"""Pattern of the names of unnamed values."""


def location(operation: Operation) -> str:
    """Return an operation's location as MLIR writes it, or one made from the model's name of its result."""
    name = operation.position.name if operation.position else None
    return operation.location or (f"loc({quoted(name)})" if name else "")


def result_names(function: Function) -> dict[Value, str]:
    """Return the callers' names of a function's results that the function computes and that are only numbers."""
    found: dict[Value, str] = {}
    for value, attributes in zip(function.body.yields, function.result_attributes):
        name = name_of_result(attributes)
        if name and is_called(value, name):
            found.setdefault(value, name)
    return found


def tensor_names(block: Block) -> dict[Value, str]:
    """Return the model's names of the tensors that the operations of a block compute.

    Several operations may implement one of the model's: its tensor is then the only value that other operations use of theirs,
    if there is exactly one, and a constant if they compute nothing.
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
    """Return the only value that operations pass to others; None if there is not exactly one."""
    computed = [o for o in operations if o.results[0].constant is None] or operations
    given = [o.results[0] for o in computed if o.results[0] in yields or users.get(o.results[0], set()) - {*operations}]
    return given[0] if len(given) == 1 else None


def is_called(value: Value, name: str) -> bool:
    """True if a value may have the name: its own is a number, or MLIR's replacement of a name that it cannot write, so that a
    file that became text has its names again when it is a file."""
    written = as_identifier(name)
    return bool(NUMBER.fullmatch(value.name)) or (
        written != name and re.fullmatch(rf"{re.escape(written)}(?:_[0-9]+)?", value.name) is not None)
