"""Graph -> graph: FFT2D and RFFT2D as one operator, which has loops of its own (`schedule/fft.py`) and both parts of the result
in one tensor, and slices of this tensor.
"""
from __future__ import annotations

import numpy as np

from ..dialects.tosa.fourier import halves
from ..dialects.tosaic.fourier import Fourier2D
from ..formulas.tosa_builder import PlacedBuilder
from ..graph.graph import BlockBuilder, Module, Operation, Value
from .expand import expand

SPARE = 16
"""Maximum number of columns, beyond the half that RFFT2D gives, that are computed to fill whole vectors."""


def expand_transforms(module: Module) -> Module:
    """The module without FFT2D and RFFT2D of known extents; unchanged (the same object) if it has none."""
    return expand(module, is_transform, transform)


def is_transform(operation: Operation) -> bool:
    return operation.op.name in ("tosa.fft2d", "tosa.rfft2d") and all(v.tensor.is_static for v in operation.operands)


def transform(builder: BlockBuilder, operation: Operation) -> tuple[Value, ...]:
    """Return the two parts of the result."""
    real, position = operation.operands[0], operation.position
    batch, height, width = real.tensor.dims
    half = operation.op.name == "tosa.rfft2d"
    columns = min(width // 2 + SPARE, width) if half else width
    op = Fourier2D(columns=columns, inverse=not half and operation.op.inverse)  # type: ignore[attr-defined]
    add = PlacedBuilder(builder, position)
    both, = add.add(op, *operation.operands)
    kept = width // 2 + 1 if half else width

    def part(number: int) -> Value:
        return add.reshape(add.slice(both, (0, number, 0, 0), (batch, 1, height, kept)), (batch, height, kept))

    if not half:
        return part(0), part(1)
    rows, places = np.zeros((1, height, 1), bool), np.zeros((1, 1, kept), bool)
    rows[:, list(halves(height))], places[:, :, list(halves(width))] = True, True
    corners = add("logical_and", add.constant(rows), add.constant(places))
    return part(0), add.select(corners, add.constant(np.zeros((1, 1, 1), np.float32)), part(1))
