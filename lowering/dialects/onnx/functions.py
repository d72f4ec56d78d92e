"""Functions of one float: rounding, exponentials, logarithms, trigonometric, hyperbolic and error functions."""
from __future__ import annotations

import math

import numpy as np

from ...formulas.angles import arc_cosine, arc_sine, arc_tangent
from ...formulas.division import divided, square_root
from ...formulas.rounding import nearest_even
from ...formulas.term import Term, ceil, cos, erf, exp, floor, log, sigmoid, sin, tanh
from ...formulas.transcendental import acosh, asinh, atanh, cosh, sinh, tan
from ...graph.types import Array
from .arithmetic import unary


def error_function(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)), x.dtype) if x.size else x


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)) in 64 bits."""
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))), x.dtype)


def inverse(x: Term) -> Term:
    return divided(x.term(1), x)


unary("Floor", np.floor, floor)
unary("Ceil", np.ceil, ceil)
unary("Round", np.rint, nearest_even)
unary("Sqrt", np.sqrt, square_root)
unary("Reciprocal", lambda x: np.asarray(1, x.dtype) / x, inverse)
unary("Exp", np.exp, exp)
unary("Log", np.log, log)
unary("Erf", error_function, erf)
unary("Sin", np.sin, sin)
unary("Cos", np.cos, cos)
unary("Tan", np.tan, tan)
unary("Asin", np.arcsin, arc_sine)
unary("Acos", np.arccos, arc_cosine)
unary("Atan", np.arctan, arc_tangent)
unary("Sinh", np.sinh, sinh)
unary("Cosh", np.cosh, cosh)
unary("Tanh", np.tanh, tanh)
unary("Asinh", np.arcsinh, asinh)
unary("Acosh", np.arccosh, acosh)
unary("Atanh", np.arctanh, atanh)
unary("Sigmoid", logistic, sigmoid)
