"""NumPy, for products in f32: the BLAS that it brings, its threads set by OPENBLAS_NUM_THREADS."""
from __future__ import annotations

import numpy as np

from ..task import Loaded, Task


def load(task: Task) -> Loaded:
    (x,), kernel = task.inputs(), np.load(task.file("npz"))["kernel"]
    out = np.empty((x.shape[0], kernel.shape[1]), x.dtype)
    np.matmul(x, kernel, out=out)
    return Loaded(lambda: np.matmul(x, kernel, out=out), lambda: [out.copy()])
