"""Windows that slide along axes of a tensor. NumPy's name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .conversion import axis_of, tensor
from .layout import moveaxis, take
from .tensor import Tensor
from .trace import problem


def sliding_window_view(x: Any, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """All windows of a shape, at every offset: their offsets are the axes of `x`, their elements new axes after these. Without
    an axis a window has an extent for each axis. The elements are copied. Raises Problem for a window that does not fit."""
    x = tensor(x)
    sizes = [window_shape] if isinstance(window_shape, int) else list(window_shape)
    axes = list(range(x.ndim)) if axis is None else [axis_of(a, x.ndim) for a in ([axis] if isinstance(axis, int) else axis)]
    if len(sizes) != len(axes):
        raise problem(f"a window of {len(sizes)} extents slides along {len(axes)} axes", "argument",
                      help="one extent for each axis")
    for size, place in zip(sizes, axes):
        count = x.shape[place] - size + 1
        if size < 0 or count < 1:
            raise problem(f"a window of {size} elements does not fit axis {place} of {x.type}", "shape")
        starts = np.arange(count, dtype=np.int32)[:, None] + np.arange(size, dtype=np.int32)
        x = moveaxis(take(x, starts, place), place + 1, -1)
    return x


__all__ = ["sliding_window_view"]
