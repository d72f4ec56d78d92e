"""Graph -> graph: quantized tensors as tensors of their storage type. What they stand for is in the operators already, so
that no code is needed for it; functions take and give arrays of the storage type."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import Op
from ..graph.quantized import is_quantized, storage_type


def strip_quantized(module: Module) -> Module:
    """The module without quantized types; unchanged (the same object) if it has none."""
    if not any(map(is_quantized, types(module))):
        return module
    declarations = tuple(stripped_operation(o, {}) for o in module.declarations)
    return replace(module, functions=tuple(map(stripped_function, module.functions)), declarations=declarations)


def types(module: Module) -> Iterator[Any]:
    """Types of arguments, results and variables, in regions too."""
    for function in module.functions:
        yield from (v.type for v in function.arguments)
        yield from function.result_types
        for operation in function.body.walk():
            yield from (v.type for v in operation.results)
            yield from (v.type for region in operation.regions for v in region.arguments)
            yield getattr(operation.op, "type", None)
    for operation in module.declarations:
        yield getattr(operation.op, "type", None)


def stripped_function(function: Function) -> Function:
    results = tuple(map(storage_type, function.result_types))
    return replace(function, body=stripped_block(function.body, {}), result_types=results)


def stripped_block(block: Block, outer: Mapping[Value, Value]) -> Block:
    values = dict(outer)
    arguments = tuple(stripped_value(v, values) for v in block.arguments)
    operations = tuple(stripped_operation(o, values) for o in block.operations)
    return replace(block, arguments=arguments, operations=operations, yields=tuple(values.get(v, v) for v in block.yields))


def stripped_value(value: Value, values: dict[Value, Value]) -> Value:
    """The value, of its storage type; `values` learns it."""
    if is_quantized(value.type):
        values[value] = replace(value, type=storage_type(value.type))
    return values.get(value, value)


def stripped_operation(operation: Operation, values: dict[Value, Value]) -> Operation:
    operands = tuple(values.get(v, v) for v in operation.operands)
    regions = tuple(stripped_block(r, values) for r in operation.regions)
    results = tuple(stripped_value(v, values) for v in operation.results)
    return replace(operation, op=stripped_op(operation.op), operands=operands, regions=regions, results=results)


def stripped_op(op: Op) -> Op:
    """The operator, with the types in its fields stripped."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(op):  # type: ignore[arg-type]  # each subclass of Op is made a dataclass
        match getattr(op, field.name):
            case tuple() as items if any(map(is_quantized, items)):
                changed[field.name] = tuple(map(storage_type, items))
            case item if is_quantized(item):
                changed[field.name] = storage_type(item)
    return replace(op, **changed) if changed else op  # type: ignore[type-var]
