"""Graph -> graph: quantized tensors as tensors of their storage type. The operators already hold the scales and zero points, so
that they need no further code; functions take and give arrays of the storage type."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..graph.graph import Module, Value
from ..graph.operator import Op
from ..graph.quantized import is_quantized, storage_type
from .substitute import ValueSubstitution


def strip_quantized(module: Module) -> Module:
    """Return the module without quantized types; unchanged (the same object) if it has none."""
    if not any(map(is_quantized, types(module))):
        return module
    return ValueSubstitution(stripped_value, lambda op, _: stripped_op(op), storage_type).module(module)


def types(module: Module) -> Iterator[Any]:
    """Yield the types of arguments, results and variables, in regions, too."""
    for function in module.functions:
        yield from (v.type for v in function.arguments)
        yield from function.result_types
        for operation in function.body.walk():
            yield from (v.type for v in operation.results)
            yield from (v.type for region in operation.regions for v in region.arguments)
            yield getattr(operation.op, "type", None)
    for operation in module.declarations:
        yield getattr(operation.op, "type", None)


def stripped_value(value: Value) -> Value:
    """Return the value with its storage type."""
    return replace(value, type=storage_type(value.type)) if is_quantized(value.type) else value


def stripped_op(op: Op) -> Op:
    """Return the operator with the types in its fields stripped."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(op):  # type: ignore[arg-type]  # each subclass of Op is made a dataclass
        match getattr(op, field.name):
            case tuple() as items if any(map(is_quantized, items)):
                changed[field.name] = tuple(map(storage_type, items))
            case item if is_quantized(item):
                changed[field.name] = storage_type(item)
    return replace(op, **changed) if changed else op  # type: ignore[type-var]
