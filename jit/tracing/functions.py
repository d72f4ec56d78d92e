"""Functions of one traced tensor, element by element: exponentials, roots, roundings. NumPy's names."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.formulas import term as terms
from ...lowering.formulas.term import Function, Term
from .arithmetic import maximum, multiply, not_equal
from .conversion import tensor
from .tensor import Tensor
from .trace import constant, recorded


def of_float(formula: Function, x: Any) -> Tensor:
    """A function of floats; integers are converted to f32."""
    return recorded(lambda t: formula(terms.in_float(t)), tensor(x))


def exp(x: Any) -> Tensor:
    return of_float(terms.exp, x)


def log(x: Any) -> Tensor:
    return of_float(terms.log, x)


def sin(x: Any) -> Tensor:
    return of_float(terms.sin, x)


def cos(x: Any) -> Tensor:
    return of_float(terms.cos, x)


def tanh(x: Any) -> Tensor:
    return of_float(terms.tanh, x)


def erf(x: Any) -> Tensor:
    return of_float(terms.erf, x)


def sigmoid(x: Any) -> Tensor:
    return of_float(terms.sigmoid, x)


def floor(x: Any) -> Tensor:
    return recorded(lambda t: terms.floor(t) if t.element.is_float else t, tensor(x))


def ceil(x: Any) -> Tensor:
    return recorded(lambda t: terms.ceil(t) if t.element.is_float else t, tensor(x))


def reciprocal(x: Any) -> Tensor:
    return of_float(terms.reciprocal, x)


def rsqrt(x: Any) -> Tensor:
    return of_float(terms.rsqrt, x)


def sqrt(x: Any) -> Tensor:
    """The reciprocal of the reciprocal square root, which TOSA has: right at 0 and infinity too."""
    return of_float(square_root, x)


def square_root(x: Term) -> Term:
    return x.of(x.builder.square_root(x.value))


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
