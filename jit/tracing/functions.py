"""Functions of one traced tensor, element by element: exponentials, roots, roundings. NumPy's names."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.graph.types import F32
from .arithmetic import astype, maximum, multiply, not_equal
from .conversion import tensor
from .tensor import Tensor
from .trace import apply, constant


def of_float(name: str, x: Any) -> Tensor:
    """A function of floats; integers are converted to f32."""
    x = tensor(x)
    return apply(name, x if x.element.is_float else astype(x, F32))


def exp(x: Any) -> Tensor:
    return of_float("exp", x)


def log(x: Any) -> Tensor:
    return of_float("log", x)


def sin(x: Any) -> Tensor:
    return of_float("sin", x)


def cos(x: Any) -> Tensor:
    return of_float("cos", x)


def tanh(x: Any) -> Tensor:
    return of_float("tanh", x)


def erf(x: Any) -> Tensor:
    return of_float("erf", x)


def sigmoid(x: Any) -> Tensor:
    return of_float("sigmoid", x)


def floor(x: Any) -> Tensor:
    x = tensor(x)
    return apply("floor", x) if x.element.is_float else x


def ceil(x: Any) -> Tensor:
    x = tensor(x)
    return apply("ceil", x) if x.element.is_float else x


def reciprocal(x: Any) -> Tensor:
    return of_float("reciprocal", x)


def rsqrt(x: Any) -> Tensor:
    return of_float("rsqrt", x)


def sqrt(x: Any) -> Tensor:
    """The reciprocal of the reciprocal square root, which TOSA has: right at 0 and infinity too."""
    return reciprocal(rsqrt(x))


def square(x: Any) -> Tensor:
    x = tensor(x)
    return multiply(x, x)


def isnan(x: Any) -> Tensor:
    x = tensor(x)
    return not_equal(x, x) if x.element.is_float else constant(np.zeros(x.shape, np.bool_))


def relu(x: Any) -> Tensor:
    return maximum(x, 0)


__all__ = ["ceil", "cos", "erf", "exp", "floor", "isnan", "log", "reciprocal", "relu", "rsqrt", "sigmoid", "sin",
           "sqrt", "square", "tanh"]
