"""A program of several kernels, two of them equal, for tests of how machine code is made by several processes."""
from __future__ import annotations

import itertools

import numpy as np
import tosaic

WIDTHS = (40, 24, 17, 9, 30, 24, 17)
WEIGHTS = [np.random.default_rng(7).standard_normal(shape).astype(np.float32) for shape in itertools.pairwise(WIDTHS)]
X = np.random.default_rng(8).standard_normal((13, WIDTHS[0])).astype(np.float32)


def chain(x: tosaic.Tensor) -> tosaic.Tensor:
    """Products with sums over rows between them."""
    for weight in WEIGHTS:
        x = tosaic.ops.tanh(x @ weight)
        x = x - tosaic.ops.max(x, axis=1, keepdims=True)
    return x
