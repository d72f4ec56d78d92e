"""An operator of ONNX for which a user has registered a class: `@tosaic.custom(domain, name)`, as for TOSA's CUSTOM.

The class gets the attributes of a node in `implementation_attrs` as JSON, with tensors as nested lists.
"""
from __future__ import annotations

import json
from typing import Any

from ....runtime.errors import Problem
from ...graph.foreign import spelling
from ...graph.graph import Module, Operation, Value
from ...graph.types import Array
from ..emitter import Emitter
from ..tosa.custom import IMPLEMENTATIONS, Custom
from .node import PREFIX, domain_of
from .operator import RESERVED, Inside, Operator


class CustomOperator(Operator):
    """A node of such an operator."""

    def __init__(self, operation: Operation, version: int, inside: Inside) -> None:
        self.operation, self.version, self.inside = operation, version, inside
        domain = domain_of(operation)
        given = dict(getattr(operation.op, "properties", None) or {})
        attributes = {name: plain(name, value) for name, value in given.items() if name not in RESERVED}
        short = spelling(operation).removeprefix(f"{PREFIX}{domain}.")
        self.custom = Custom(operator_name=short, domain_name=domain,
                             implementation_attrs=json.dumps(attributes) if attributes else "")

    def reference(self, *arrays: Array) -> Any:
        return self.custom.reference(*arrays)

    def lower(self, e: Emitter, *values: Value) -> tuple[Value, ...]:
        return e.add(self.custom, *values)


def is_custom(operation: Operation, module: Module) -> bool:
    """True if a user has registered a class for the operator of a node."""
    domain, _, short = spelling(operation).removeprefix(PREFIX).rpartition(".")
    return (domain, short) in IMPLEMENTATIONS


def plain(name: str, value: Any) -> Any:
    """Return an attribute as JSON data."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return [plain(name, item) for item in value]
    for field in ("value", "values", "array"):
        if (found := getattr(value, field, None)) is not None:
            return found.tolist() if field == "array" else list(found) if isinstance(found, tuple) else found
    raise Problem(f"the attribute {name} has no form in JSON", kind="attribute")
