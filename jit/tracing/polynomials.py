"""Polynomials as vectors of coefficients, the highest power first. NumPy's names.

The shape of a result follows from the shapes of its operands: leading zeros, which NumPy's `polymul` drops, stay.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.graph.types import F32
from .arithmetic import add, divide, multiply, negative, subtract
from .contractions import convolve, factors, matmul
from .conversion import converted, tensor
from .creation import ones, ones_like, zeros, zeros_like
from .functions import sqrt
from .layout import concatenate, reshape, stack
from .linear_algebra import pinv
from .rearranging import atleast_1d
from .reduction import sum, type_of_sum
from .tensor import Tensor
from .trace import problem


def coefficients(p: Any, name: str) -> Tensor:
    found = atleast_1d(p)
    if found.ndim != 1:
        raise problem(f"{name} takes vectors of coefficients, not {found.type}", "shape")
    return found


def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with these coefficients at x, by one product per coefficient."""
    given, at = factors("polyval", p, x)
    given = coefficients(given, "polyval")
    found = zeros_like(at)
    for i in range(given.size):
        found = add(multiply(found, at), given[i])
    return found


def both(name: str, a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    """Return two polynomials, both with the coefficient count of the longer one."""
    x, y = (coefficients(v, name) for v in factors(name, a1, a2))
    count = max(x.size, y.size)
    x, y = (v if v.size == count else concatenate([zeros(count - v.size, v.element), v]) for v in (x, y))
    return x, y


def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials."""
    return add(*both("polyadd", a1, a2))


def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference of two polynomials."""
    return subtract(*both("polysub", a1, a2))


def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of two polynomials."""
    return convolve(coefficients(a1, "polymul"), coefficients(a2, "polymul"))


def times_of(m: int, name: str) -> int:
    if not isinstance(m, int) or m < 0:
        raise problem(f"{name} is taken a whole number of times, not {m!r}", "argument")
    return m


def polyder(p: Any, m: int = 1) -> Tensor:
    """The `m`th derivative of a polynomial."""
    x = coefficients(p, "polyder")
    for _ in range(times_of(m, "polyder")):
        x = multiply(x[:-1], np.arange(x.size - 1, 0, -1))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The `m`-fold integral of a polynomial, with the constants k."""
    x = coefficients(p, "polyint")
    x = x if x.element.is_float else converted(x, F32)
    constants = np.zeros(m) if k is None else np.atleast_1d(k)
    if constants.size not in (1, m):
        raise problem(f"polyint has {constants.size} constants for {m} integrals", "argument")
    for i in range(times_of(m, "polyint")):
        last = tensor(constants[i if constants.size > 1 else 0].reshape(1), x.element)
        x = concatenate([divide(x, np.arange(x.size, 0, -1)), last])
    return x


def poly(seq_of_zeros: Any) -> Tensor:
    """The polynomial with these zeros and a first coefficient of 1."""
    x = coefficients(seq_of_zeros, "poly")
    x = x if x.element.is_float else converted(x, F32)
    found = ones((1,), x.element)
    for i in range(x.size):
        found = convolve(found, concatenate([ones((1,), x.element), negative(x[i:i + 1])]))
    return found


def polyfit(x: Any, y: Any, deg: int, w: Any = None) -> Tensor:
    """Least-squares polynomial of degree `deg` for the points (x, y): it minimizes the sum of the squares of its distances,
    each times its weight w. More than `deg` of the x must differ; y has one column for each of several polynomials."""
    at, values = factors("polyfit", x, y)
    at, values = (v if v.element.is_float else converted(v, F32) for v in (at, values))
    is_one = at.ndim == 1 and values.ndim in (1, 2) and values.shape[0] == at.size
    if not is_one or not isinstance(deg, int) or not 0 <= deg < at.size:
        raise problem(f"polyfit of degree {deg!r} through {at.type} and {values.type}", "shape",
                      help="a vector, as many values, and a degree below their number")
    powers = vander(at, deg + 1)
    if w is not None:
        weights = reshape(converted(tensor(w), at.element), (-1, 1))
        powers = multiply(powers, weights)
        values = multiply(values, weights if values.ndim == 2 else reshape(weights, -1))
    scale = sqrt(sum(multiply(powers, powers), 0))
    found = matmul(pinv(divide(powers, scale)), values)
    return divide(found, scale if values.ndim == 1 else reshape(scale, (-1, 1)))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector as columns, N of them (default: as many as it has elements), the highest first, or the lowest
    first if `increasing`."""
    at = tensor(x)
    if at.ndim != 1:
        raise problem(f"vander takes a vector, not {at.type}", "shape")
    at = converted(at, type_of_sum(at.element))
    count = at.size if N is None else N
    columns = [ones_like(at)]
    while len(columns) < count:
        columns.append(multiply(columns[-1], at))
    columns = columns[:count]
    if not columns:
        return reshape(at, (-1, 1))[:, :0]
    return stack(columns if increasing else columns[::-1], 1)


__all__ = ["poly", "polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval", "vander"]
