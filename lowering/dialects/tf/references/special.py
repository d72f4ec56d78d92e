"""Functions that NumPy does not have: the derivative of lgamma, x log(1 + y), half the sum of squares, the k greatest."""
from __future__ import annotations

import math

import numpy as np

from ....graph.graph import Operation
from ....graph.types import Array
from .table import reference


@reference("tf.Xlog1py")
def xlog1py(operation: Operation, x: Array, y: Array) -> Array:
    """0 where x is 0."""
    return np.where(x == 0, np.zeros((), x.dtype), x * np.log1p(y))


@reference("tf.L2Loss")
def l2_loss(operation: Operation, x: Array) -> Array:
    return np.asarray(np.square(x.astype(np.float64)).sum() / 2).astype(x.dtype)


@reference("tf.Digamma")
def digamma(operation: Operation, x: Array) -> Array:
    found = [digamma_of(v) for v in x.astype(np.float64).reshape(-1).tolist()]
    return np.array(found, np.float64).reshape(x.shape).astype(x.dtype)


def digamma_of(x: float) -> float:
    """Compute digamma by the recurrence up to 40, where the asymptotic series has all digits; NaN at its poles."""
    if not math.isfinite(x) or (x <= 0 and x == math.floor(x)):
        return x if x == math.inf else math.nan
    if x < 0:
        return digamma_of(1 - x) - math.pi / math.tan(math.pi * math.fmod(x, 1))
    steps = 0.0
    while x < 40:
        steps, x = steps + 1 / x, x + 1
    return math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) - steps


@reference("tf.TopKV2")
def top_k(operation: Operation, x: Array, k: Array) -> tuple[Array, Array]:
    """Return the greatest elements along the last axis, equal ones in the order of their indices."""
    places = np.argsort(-x.astype(np.float64) if x.dtype.kind not in "iu" else np.invert(x), axis=-1, kind="stable")
    places = places[..., :int(k)]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)
