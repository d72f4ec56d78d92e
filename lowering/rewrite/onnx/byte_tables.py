"""Functions between bytes as tables of 256 values: a chain of elementwise operators between one DequantizeLinear and a
QuantizeLinear, whose other operands are all single numbers, is evaluated for each byte at compile time."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...dialects.onnx.node import NO_VALUE, PREFIX
from ...dialects.onnx.operator import interpreted
from ...dialects.onnx.operators import operator_of
from ...graph.graph import Operation, Value
from ...graph.types import Array
from .edited_graph import DEQUANTIZE, EditedGraph, Steps, name_of

ELEMENTWISE = frozenset((
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu",
    "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul",
    "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Sub", "Swish", "Tan", "Tanh", "ThresholdedRelu", "com.microsoft.Gelu", "com.microsoft.QuickGelu"))
MOST_NODES = 32
"""Maximum number of nodes between two bytes."""


def tabulated(graph: EditedGraph, operation: Operation, to: Steps, result: Value) -> bool:
    """True if the operand of a QuantizeLinear was replaced by a table."""
    found = Slice(graph)
    if not to.is_byte or not to.of_tensor or not found.reaches(operation.operands[0]) or found.source is None:
        return False
    table = found.table(operation.operands[0], to)
    if table is None:
        return False
    operands = found.source.stored, graph.new_constant(table, "table")
    graph.node("tosaic.QLinearTable", operands, (result,), operation)
    return True


class Slice:
    """The nodes that compute a value, back to the one integer tensor that they start from."""

    def __init__(self, graph: EditedGraph) -> None:
        self.graph = graph
        self.source: Steps | None = None
        self.nodes: list[Operation] = []
        self.known: dict[Value, Any] = {}

    def reaches(self, value: Value, depth: int = 0) -> bool:
        """True if a value is computed from one tensor of bytes and single numbers alone; `nodes` is in order then."""
        if value in self.known:
            return True
        constant = self.graph.constant(value)
        if constant is not None:
            self.known[value] = constant.reshape(()) if constant.size == 1 else constant
            return constant.size == 1 and constant.ndim <= 1
        maker = self.graph.maker(value)
        if maker is None or max(depth, len(self.nodes)) > MOST_NODES:
            return False
        if name_of(maker) == NO_VALUE.removeprefix(PREFIX):
            self.known[value] = None
            return True
        if name_of(maker) in DEQUANTIZE:
            return self.starts_at(value)
        if name_of(maker) not in ELEMENTWISE or not all(self.reaches(v, depth + 1) for v in maker.operands):
            return False
        if value not in self.known:
            self.nodes.append(maker)
            self.known[value] = None
        return True

    def starts_at(self, value: Value) -> bool:
        steps = self.graph.dequantized(value)
        if steps is None or not steps.is_byte or not steps.of_tensor:
            return False
        if self.source is not None and self.source.stored is not steps.stored:
            return False
        stored = self.graph.constant(steps.stored)
        if stored is not None:
            self.known[value] = steps.real(stored).reshape(()) if stored.size == 1 else None
            return stored.size == 1
        self.source = self.source or steps
        self.known[value] = steps.real(all_of(steps))
        return True

    def table(self, value: Value, to: Steps) -> Array | None:
        """Return the table with the result for each byte; None if a node cannot be computed."""
        try:
            with np.errstate(all="ignore"):
                for node in self.nodes:
                    found = interpreted(operator_of(node, self.graph.module), [self.known[v] for v in node.operands])
                    self.known.update(zip(node.results, found))
        except Problem:
            return None
        return to.nearest(np.broadcast_to(self.known[value], (256,)))


def all_of(steps: Steps) -> Array:
    """Return every byte, in order."""
    return np.arange(steps.element.minimum, steps.element.maximum + 1).astype(steps.element.dtype)
