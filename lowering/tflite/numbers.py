"""Quantized types of a .tflite file's tensors. The converter's types lack the scales and zero points, which its operators hold.
So inputs, results, variables and constants get their types here.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...runtime.errors import Problem
from ..dialects.tosa.data import Const, Identity
from ..graph.agreement import check_agreement
from ..graph.graph import Operation, Value
from ..graph.quantized import STORAGE, Quantized, full_range, is_quantized, storage_type, uniform
from ..graph.types import F32, TensorType, Type
from ..rewrite.substitute import ValueSubstitution
from ..text.attribute_printer import quoted

if TYPE_CHECKING:
    from ..graph.graph import Function
    from .records import SubgraphRecord, TensorRecord

SPELLINGS = {element: spelling for spelling, element in STORAGE.items()}


def quantized_type(type: Type, record: TensorRecord) -> Type:
    """Return a tensor's type with the quantization in the file; unchanged if the file has none, or an invalid one."""
    if not isinstance(type, TensorType) or record.scales is None or type.element not in SPELLINGS:
        return type
    storage, scales = SPELLINGS[type.element], record.scales
    points = np.zeros(len(scales), np.int64) if record.zero_points is None else record.zero_points
    points = np.repeat(points, len(scales)) if len(points) == 1 else points
    low, high = full_range(storage)
    is_sensible = len(points) == len(scales) and bool(np.all(np.isfinite(scales) & (scales > 0)))
    if not is_sensible or points.min() < low or points.max() > high:
        return type
    axis = record.axis if len(scales) > 1 else None
    if axis is not None and not (type.shape is not None and axis < len(type.shape) and type.shape[axis] == len(scales)):
        return type
    return type.with_element(uniform(storage, F32, scales.tolist(), points.tolist(), axis))


def with_numbers(function: Function, graph: SubgraphRecord) -> Function:
    """Return the function of a subgraph with quantized types for its arguments and declared results."""
    types = {v: quantized_type(v.type, graph.tensors[t]) for v, t in zip(function.arguments, graph.inputs)}

    def typed(value: Value) -> Value:
        found = types.get(value, value.type)
        return value if found is value.type else replace(value, type=found)

    results = tuple(quantized_type(type, graph.tensors[t]) for type, t in zip(function.result_types, graph.outputs))
    changed = any(found is not v.type for v, found in types.items())
    found = integers_apart(ValueSubstitution(typed).function(function)) if changed else function
    return replace(found, result_types=results)


def integers_apart(function: Function) -> Function:
    """Return the function with an identity to the storage type before each operator that takes quantized tensors as plain
    integers. A mean, and the greater of two, need no zero point if their result has the same one: the converter's operators for
    them hold none, so that they do not agree with a type that has one."""
    operations: list[Operation] = []
    for operation in function.body.operations:
        if not agrees(operation):
            plain = {x: Value(x.name, storage_type(x.tensor), x.position) for x in operation.operands if is_quantized(x.type)}
            operations += [Operation(Identity(), (x,), (own,), position=operation.position) for x, own in plain.items()]
            operation = replace(operation, operands=tuple(plain.get(x, x) for x in operation.operands))
        operations.append(operation)
    return replace(function, body=replace(function.body, operations=tuple(operations)))


def agrees(operation: Operation) -> bool:
    try:
        check_agreement(operation)
    except Problem:
        return False
    return True


def quantized_constants(graph: SubgraphRecord) -> Mapping[str, TensorRecord]:
    """Return the quantized constants of a subgraph, by their quoted names."""
    return {quoted(t.name): t for t in graph.tensors if t.data is not None and t.scales is not None}


def with_constant_type(operation: Operation, names: Sequence[str], records: Mapping[str, TensorRecord]
                       ) -> tuple[Value, ...]:
    """Return the results of an operation; for a constant that the file has unchanged, with the file's type."""
    if not isinstance(operation.op, Const):
        return operation.results
    record = next((records[name] for name in names if name in records), None)
    value = operation.results[0]
    if record is None or not isinstance(value.type, TensorType) or value.type.shape != record.shape:
        return operation.results
    return (replace(value, type=quantized_type(value.type, record)),)


def agreed(types: Sequence[Type], declared: TensorType) -> TensorType:
    """Return a variable's type with the quantization that all of its uses agree on; unchanged if they differ."""
    elements = {t.element for t in types if isinstance(t, TensorType)}
    element = elements.pop() if len(elements) == 1 else declared.element
    return declared.with_element(element) if isinstance(element, Quantized) else declared
