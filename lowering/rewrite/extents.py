"""Graph -> graph: RESHAPE's extents and SLICE's sizes written out where the graph has -1 (the inferred extent) and the result
has a static shape.

MLIR accepts -1, the specification does not: files for other tools need the number.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..dialects.tosa.data import ConstShape
from ..dialects.tosa.layout import Reshape, Slice
from ..graph.graph import BlockBuilder, Function, Operation, Value
from ..graph.types import TensorType
from .expand import expanded
from .prune import prune_function


def with_explicit_extents(function: Function) -> Function:
    """The function without -1 in the shapes of its RESHAPEs and SLICEs; the same object if it has none."""
    if not any(map(leaves_one, function.body.walk())):
        return function
    return prune_function(replace(function, body=expanded(function.body, leaves_one, explicit, {})))


def leaves_one(operation: Operation) -> bool:
    """True if the operation is a RESHAPE or SLICE that leaves an extent to be inferred, and the extent is known."""
    if not isinstance(operation.op, Reshape | Slice) or len(operation.operands) < 2:
        return False
    shape, type = operation.operands[-1].constant, operation.results[0].type
    return shape is not None and bool((shape < 0).any()) and isinstance(type, TensorType) and type.is_static


def explicit(builder: BlockBuilder, operation: Operation) -> tuple[Value, ...]:
    result, position = operation.results[0], operation.position
    shape, = builder.add(ConstShape(np.array(result.tensor.dims, np.int64)), position=position, name=f"{result.name}_shape")
    return builder.add(operation.op, *operation.operands[:-1], shape, position=position, name=result.name)
