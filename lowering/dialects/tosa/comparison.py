"""Comparisons of two operands: EQUAL, GREATER, GREATER_EQUAL. False where one is NaN. TOSA 1.0, section 2.8."""
from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...elements.expression import Expr
from ...graph.types import I1, Array
from .elementwise import NUMBERS, Binary, Results


class Comparison(Binary):
    """A comparison of two numbers, which gives a bool."""
    results: ClassVar[Results] = dict.fromkeys(NUMBERS, I1)

    def storage(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return np.dtype(bool)


class Equal(Comparison, name="tosa.equal"):
    """a == b."""

    def exact(self, a: Array, b: Array) -> Array:
        return np.equal(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a.equals(b)


class Greater(Comparison, name="tosa.greater"):
    """a > b."""

    def exact(self, a: Array, b: Array) -> Array:
        return np.greater(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return b < a


class GreaterEqual(Comparison, name="tosa.greater_equal"):
    """a >= b."""

    def exact(self, a: Array, b: Array) -> Array:
        return np.greater_equal(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return b <= a
