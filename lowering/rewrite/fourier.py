"""Graph -> graph: FFT2D and RFFT2D as one operator with both parts of the result in one tensor, which has loops of its own
(`schedule/fourier.py`), and slices of it.
"""
from __future__ import annotations

import numpy as np

from ..dialects.tosa.bitwise import LogicalAnd
from ..dialects.tosa.data import Const, ConstShape
from ..dialects.tosa.fourier import halves
from ..dialects.tosa.layout import Reshape, Slice
from ..dialects.tosa.ternary import Select
from ..dialects.tosaic.fourier import Fourier2D
from ..graph.graph import BlockBuilder, Module, Operation, Value
from ..graph.types import Array
from .expand import expand

SPARE = 16
"""At most this number of columns beyond the half that RFFT2D gives is computed, in whole vectors."""


def expand_transforms(module: Module) -> Module:
    """The module without FFT2D and RFFT2D of known extents; unchanged (the same object) if it has none."""
    return expand(module, is_transform, transform)


def is_transform(operation: Operation) -> bool:
    return operation.op.name in ("tosa.fft2d", "tosa.rfft2d") and all(v.tensor.is_static for v in operation.operands)


def transform(builder: BlockBuilder, operation: Operation) -> tuple[Value, ...]:
    """The two parts of the result."""
    real, position = operation.operands[0], operation.position
    batch, height, width = real.tensor.dims
    half = operation.op.name == "tosa.rfft2d"
    columns = min(width // 2 + SPARE, width) if half else width
    op = Fourier2D(columns=columns, inverse=not half and operation.op.inverse)  # type: ignore[attr-defined]

    def constant(values: Array) -> Value:
        return builder.add(Const(values), position=position)[0]

    def part(number: int) -> Value:
        start, size = (builder.add(ConstShape(np.array(x, np.int64)), position=position)[0]
                       for x in ((0, number, 0, 0), (batch, 1, height, kept)))
        cut = builder.add(Slice(), both, start, size, position=position)[0]
        shape = builder.add(ConstShape(np.array((batch, height, kept), np.int64)), position=position)[0]
        return builder.add(Reshape(), cut, shape, position=position)[0]

    both, = builder.add(op, *operation.operands, position=position)
    kept = width // 2 + 1 if half else width
    if not half:
        return part(0), part(1)
    rows, places = np.zeros((1, height, 1), bool), np.zeros((1, 1, kept), bool)
    rows[:, list(halves(height))], places[:, :, list(halves(width))] = True, True
    corners = builder.add(LogicalAnd(), constant(rows), constant(places), position=position)[0]
    zero = constant(np.zeros((1, 1, 1), np.float32))
    return part(0), builder.add(Select(), corners, zero, part(1), position=position)[0]
