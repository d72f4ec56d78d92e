"""DequantizeLinear moved below operators that only move elements or take the greatest: these then work on integers, and later
patterns match the integers. The results are the same numbers."""
from __future__ import annotations

from dataclasses import replace

from ...graph.foreign import find
from ...graph.graph import Operation, Value
from ...graph.types import TensorType
from .edited_graph import EditedGraph, Steps, name_of, real_number, whole

MOVES = ("Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "GatherElements", "GatherND",
         "Expand", "Tile", "Split", "DepthToSpace", "SpaceToDepth")
ORDERED = ("MaxPool", "ReduceMax", "ReduceMin", "GlobalMaxPool")
"""Operators that are moved for bytes only: their results are elements of their operands."""


def moved(graph: EditedGraph, operation: Operation) -> bool:
    """True if the node was rewritten on integers."""
    steps = graph.dequantized(operation.operands[0]) if operation.operands and not operation.regions else None
    if steps is None:
        return False
    name = name_of(operation)
    if not steps.of_tensor:
        return name == "Transpose" and transposed(graph, operation, steps)
    if name == "Concat":
        return concatenated(graph, operation, steps)
    if name == "Pad":
        return padded(graph, operation, steps)
    plain = name in MOVES or (name in ORDERED and steps.is_byte and len(operation.results) == 1) or (
        name in ("Resize", "Upsample") and find(operation, "mode", "nearest") == "nearest" and not has_border(operation))
    if not plain or steps.element.bits > 16:
        return False
    written(graph, operation, (steps.stored, *operation.operands[1:]), steps)
    return True


def has_border(operation: Operation) -> bool:
    """True if a Resize may give numbers that are not elements of its operand."""
    return find(operation, "coordinate_transformation_mode") == "tf_crop_and_resize"


def written(graph: EditedGraph, operation: Operation, operands: tuple[Value, ...], steps: Steps, axis: int | None = None
            ) -> None:
    """Add the node on integers, and DequantizeLinear nodes for its results."""
    results = tuple(graph.value(r.name, steps.element, r) for r in operation.results)
    graph.add(replace(operation, operands=operands, results=results))
    for stored, result in zip(results, operation.results):
        properties = {} if axis is None else {"axis": whole(axis)}
        graph.node("DequantizeLinear", (stored, *graph.parameters(steps)), (result,), operation, properties)


def transposed(graph: EditedGraph, operation: Operation, steps: Steps) -> bool:
    """Move the axis of the scales with the transpose."""
    order, axis = find(operation, "perm"), steps.axis
    type = steps.stored.type
    rank = len(order.values) if order is not None else len(type.dims) if isinstance(type, TensorType) and type.shape else 0
    if not rank or axis is None or not -rank <= axis < rank:
        return False
    places = tuple(order.values) if order is not None else tuple(reversed(range(rank)))
    written(graph, operation, (steps.stored,), steps, places.index(axis % rank))
    return True


def concatenated(graph: EditedGraph, operation: Operation, steps: Steps) -> bool:
    """Concatenate integers of one scale without changing them."""
    parts = [graph.dequantized(v) for v in operation.operands]
    if not all(p is not None and p.same(steps) for p in parts):
        return False
    written(graph, operation, tuple(p.stored for p in parts if p is not None), steps)
    return True


def padded(graph: EditedGraph, operation: Operation, steps: Steps) -> bool:
    """Pad integers with their zero point, where the floats have zeros."""
    if find(operation, "pads") is not None or real_number(operation, "value", 0) or len(operation.operands) < 2:
        return False
    border, axes = graph.optional(operation, 2), operation.operands[3:]
    if find(operation, "mode", "constant") == "constant":
        known = None if border is None else graph.constant(border)
        if border is not None and (known is None or known.any()):
            return False
        border = graph.new_constant(steps.zero, "zero")
    others = () if border is None else (border, *axes)
    written(graph, operation, (steps.stored, operation.operands[1], *others), steps)
    return True
