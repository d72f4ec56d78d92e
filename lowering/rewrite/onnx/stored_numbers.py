"""Quantized types of the integers that an ONNX model takes and gives: of inputs that only DequantizeLinear reads, and of
results that QuantizeLinear makes."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graph.graph import Function, Module, Value, uses
from ...graph.quantized import STORAGE, uniform
from ...graph.types import F32, ElementType, TensorType
from .edited_graph import DEQUANTIZE, QUANTIZE, EditedGraph, Steps, name_of

SPELLINGS = {element: spelling for spelling, element in STORAGE.items()}


def stored_numbers(module: Module, function: Function) -> Mapping[Value, ElementType]:
    """Return the quantized types of those arguments and results whose types are known."""
    graph = EditedGraph(module, uses(function.body))
    for operation in function.body.operations:
        graph.add(operation)
    found = {v: steps for v in function.arguments if (steps := of_argument(graph, v)) is not None}
    for value in function.body.yields:
        maker = graph.made_by(value, *QUANTIZE)
        steps = None if maker is None else graph.steps(maker, value)
        if steps is not None:
            found[value] = steps
    return {v: element for v, steps in found.items() if (element := quantized(v, steps)) is not None}


def of_argument(graph: EditedGraph, argument: Value) -> Steps | None:
    """Return the quantization of an argument if all its readers agree on one."""
    readers = graph.readers.get(argument, [])
    if not readers or not all(r is not None and name_of(r) in DEQUANTIZE and r.operands[0] is argument for r in readers):
        return None
    said = [graph.steps(r, argument) for r in readers if r is not None]
    first = said[0]
    return first if first is not None and all(s is first or (s is not None and s.same(first)) for s in said) else None


def quantized(value: Value, steps: Steps) -> ElementType | None:
    """Return the quantized type; None if there is no such type."""
    storage = SPELLINGS.get(steps.element)
    rank = len(value.type.shape) if isinstance(value.type, TensorType) and value.type.shape is not None else None
    if storage is None or (steps.axis is not None and (rank is None or not -rank <= steps.axis < rank)):
        return None
    axis = None if steps.axis is None or rank is None else steps.axis % rank
    scales, zeros = np.atleast_1d(steps.scale).tolist(), np.atleast_1d(steps.zero).tolist()
    return uniform(storage, F32, [float(s) for s in scales], [int(z) for z in zeros], axis)
