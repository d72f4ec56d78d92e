"""Inspection of floats of traced tensors: roundings, NaN, signs, neighbours, mantissas and exponents. NumPy's names."""
from __future__ import annotations

from typing import Any

from ...lowering.formulas.term import Term, maximum, minimum
from ...lowering.graph.types import F64, I32, I64
from .conversion import broadcast, converted, tensor
from .elementwise import checked_loop, elementwise, recorded_as, results
from .formulas_of_numpy import FORMULAS
from .tensor import Tensor
from .trace import recorded

FURTHEST = 1 << 14
"""Exponent beyond which every number of every float type is 0 or infinite."""


def floor(x: Any) -> Tensor:
    """The greatest integer not above x."""
    return elementwise("floor", x)


def ceil(x: Any) -> Tensor:
    """The least integer not below x."""
    return elementwise("ceil", x)


def trunc(x: Any) -> Tensor:
    """x rounded toward zero."""
    return elementwise("trunc", x)


def rint(x: Any) -> Tensor:
    """The nearest integer, ties to the even one."""
    return elementwise("rint", x)


def isnan(x: Any) -> Tensor:
    """True if x is NaN."""
    return elementwise("isnan", x)


def isinf(x: Any) -> Tensor:
    """True if x is infinite."""
    return elementwise("isinf", x)


def isfinite(x: Any) -> Tensor:
    """True if x is neither infinite nor NaN."""
    return elementwise("isfinite", x)


def signbit(x: Any) -> Tensor:
    """True if the sign is minus, including that of -0."""
    return elementwise("signbit", x)


def copysign(a: Any, b: Any) -> Tensor:
    """The magnitude of a with the sign of b."""
    return elementwise("copysign", a, b)


def nextafter(a: Any, b: Any) -> Tensor:
    """The neighbour of a in the direction of b."""
    return elementwise("nextafter", a, b)


def spacing(x: Any) -> Tensor:
    """Distance to the neighbour further from 0, with the sign of x."""
    return elementwise("spacing", x)


def modf(x: Any) -> tuple[Tensor, Tensor]:
    """The fraction and the whole part, both with the sign of x."""
    rest, whole = results("modf", x)
    return rest, whole


def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """A mantissa in [1/2, 1) and an i32 exponent with x = mantissa * 2**exponent."""
    mantissa, exponent = results("frexp", x)
    return mantissa, exponent


def ldexp(a: Any, b: Any) -> Tensor:
    """a * 2**b for integers b, rounded once."""
    x, y = tensor(a), tensor(b)
    rank = max(x.ndim, y.ndim)
    given = [tensor(x, rank=rank), tensor(y, rank=rank)]
    broadcast(x.shape, y.shape, operator="ldexp")
    (element, exponents), outputs = checked_loop("ldexp", given)
    working = FORMULAS["ldexp"].working(element)

    def exponent(t: Term) -> Term:
        wide = t.cast(I64 if exponents.bits == 64 else I32)
        return minimum(maximum(wide, -FURTHEST), FURTHEST).cast(I64 if working == F64 else I32)
    formula = FORMULAS["ldexp"].floats
    assert formula is not None
    return recorded_as(formula, [converted(given[0], working), recorded(exponent, given[1])], outputs)[0]


__all__ = ["ceil", "copysign", "floor", "frexp", "isfinite", "isinf", "isnan", "ldexp", "modf", "nextafter", "rint", "signbit",
           "spacing", "trunc"]
