"""Pools: the greatest or the mean of each window, without the padding."""
from __future__ import annotations

from collections.abc import Callable

from .....runtime.errors import Problem
from ....formulas.windows import Window
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from ...pools import max_pool, mean_pool
from .table import legalization
from .windows import AxisOrder

Pool = Callable[[Emitter, Value, Window], Value]


@legalization("tf.MaxPool")
def max_pool_2d(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 2, max_pool)


@legalization("tf.AvgPool")
def avg_pool_2d(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 2, mean_pool)


@legalization("tf.MaxPool3D")
def max_pool_3d(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 3, max_pool)


@legalization("tf.AvgPool3D")
def avg_pool_3d(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 3, mean_pool)


def pooled(e: Emitter, operation: Operation, x: Value, spatial: int, pool: Pool) -> Value:
    layout = AxisOrder.of(operation, x, spatial)
    image = layout.last(e, x)
    image, window = layout.window(image.tensor.dims[1:-1], layout.numbers("ksize"), (1,) * spatial).placed(e, image)
    for (before, after), k in zip(window.pads, window.kernel):
        if max(before, after) >= k:
            raise Problem(f"a padding of {max(before, after)} is not below the window of {k}", kind="attribute")
    return layout.as_written(e, pool(e, image, window))
