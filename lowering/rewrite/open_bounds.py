"""Graph -> graph: a bound of CLAMP that is the largest finite number becomes infinite.

torch-mlir writes a ReLU as a CLAMP to [0, 3.4e38], which would make an infinite value finite.
"""
from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes

from ..dialects.tosa.activation import Clamp
from ..graph.graph import Module, Value
from ..graph.operator import Op
from .substitute import ValueSubstitution


def open_bounds(module: Module) -> Module:
    """Return the module with infinite bounds in place of the largest finite ones."""
    return ValueSubstitution(lambda value: value, opened).module(module)


def opened(op: Op, operands: tuple[Value, ...]) -> Op:
    if not isinstance(op, Clamp) or operands[0].tensor.element.kind != "float":
        return op
    largest = float(ml_dtypes.finfo(operands[0].tensor.element.dtype).max)
    return replace(op, min_val=-math.inf if op.min_val <= -largest else op.min_val,
                   max_val=math.inf if op.max_val >= largest else op.max_val)
