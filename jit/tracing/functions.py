"""Functions of traced tensors of floats, element by element: exponentials, logarithms, roots, angles, and what networks use.
NumPy's names; integers become f32."""
from __future__ import annotations

from typing import Any

from ...lowering.formulas import term as terms
from ...lowering.formulas.term import Function
from .arithmetic import maximum
from .conversion import tensor
from .elementwise import elementwise
from .tensor import Tensor
from .trace import recorded


def of_float(formula: Function, x: Any) -> Tensor:
    """Record a function of floats; integers are converted to f32."""
    return recorded(lambda t: formula(terms.in_float(t)), tensor(x))


def exp(x: Any) -> Tensor:
    """e to the x."""
    return elementwise("exp", x)


def exp2(x: Any) -> Tensor:
    """2 to the x."""
    return elementwise("exp2", x)


def expm1(x: Any) -> Tensor:
    """exp(x) - 1, accurate near 0."""
    return elementwise("expm1", x)


def log(x: Any) -> Tensor:
    """The natural logarithm; NaN below 0."""
    return elementwise("log", x)


def log2(x: Any) -> Tensor:
    """The logarithm to base 2; exact for powers of 2."""
    return elementwise("log2", x)


def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
    return elementwise("log10", x)


def log1p(x: Any) -> Tensor:
    """log(1 + x), accurate near 0."""
    return elementwise("log1p", x)


def logaddexp(a: Any, b: Any) -> Tensor:
    """log(exp(a) + exp(b)), without overflow."""
    return elementwise("logaddexp", a, b)


def logaddexp2(a: Any, b: Any) -> Tensor:
    """log2(2**a + 2**b), without overflow."""
    return elementwise("logaddexp2", a, b)


def sqrt(x: Any) -> Tensor:
    """The square root; NaN below 0."""
    return elementwise("sqrt", x)


def cbrt(x: Any) -> Tensor:
    """The cubic root."""
    return elementwise("cbrt", x)


def hypot(a: Any, b: Any) -> Tensor:
    """sqrt(a**2 + b**2), without overflow."""
    return elementwise("hypot", a, b)


def sin(x: Any) -> Tensor:
    """The sine of an angle in radians."""
    return elementwise("sin", x)


def cos(x: Any) -> Tensor:
    """The cosine of an angle in radians."""
    return elementwise("cos", x)


def tan(x: Any) -> Tensor:
    """The tangent of an angle in radians."""
    return elementwise("tan", x)


def arcsin(x: Any) -> Tensor:
    """The angle whose sine is x; NaN beyond 1."""
    return elementwise("arcsin", x)


def arccos(x: Any) -> Tensor:
    """The angle whose cosine is x; NaN beyond 1."""
    return elementwise("arccos", x)


def arctan(x: Any) -> Tensor:
    """The angle whose tangent is x."""
    return elementwise("arctan", x)


def arctan2(a: Any, b: Any) -> Tensor:
    """The angle of the point (b, a), respecting signs of zeros."""
    return elementwise("arctan2", a, b)


def sinh(x: Any) -> Tensor:
    """The hyperbolic sine."""
    return elementwise("sinh", x)


def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine."""
    return elementwise("cosh", x)


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return elementwise("tanh", x)


def arcsinh(x: Any) -> Tensor:
    """The inverse of sinh."""
    return elementwise("arcsinh", x)


def arccosh(x: Any) -> Tensor:
    """The inverse of cosh; NaN below 1."""
    return elementwise("arccosh", x)


def arctanh(x: Any) -> Tensor:
    """The inverse of tanh; NaN beyond 1."""
    return elementwise("arctanh", x)


def degrees(x: Any) -> Tensor:
    """An angle in degrees, converted from radians."""
    return elementwise("degrees", x)


def radians(x: Any) -> Tensor:
    """An angle in radians, converted from degrees."""
    return elementwise("radians", x)


def rad2deg(x: Any) -> Tensor:
    """The same as `degrees`."""
    return elementwise("rad2deg", x)


def deg2rad(x: Any) -> Tensor:
    """The same as `radians`."""
    return elementwise("deg2rad", x)


def erf(x: Any) -> Tensor:
    """The error function."""
    return of_float(terms.erf, x)


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
    return of_float(terms.sigmoid, x)


def rsqrt(x: Any) -> Tensor:
    """1 / sqrt(x)."""
    return of_float(terms.rsqrt, x)


def relu(x: Any) -> Tensor:
    """x, or 0 if x is negative."""
    return maximum(x, 0)


__all__ = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "rad2deg",
    "radians",
    "relu",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
