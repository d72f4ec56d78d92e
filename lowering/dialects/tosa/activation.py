"""Activation functions: CLAMP, ERF, SIGMOID, TANH. TOSA 1.0, section 2.4."""
from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements import real_functions
from ...elements.expression import Expr, apply, clamp, literal
from ...graph.operator import Operand, attribute
from ...graph.types import I8, I16, Array, TensorType
from .binary import check_nan_mode
from .elementwise import FLOATS, WHOLE, Results, Unary, alike, is_integer

erf_of_each = np.frompyfunc(math.erf, 1, 1)


class Erf(Unary, name="tosa.erf"):
    """The error function."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.asarray(erf_of_each(x)).astype(np.float64)

    def scalar(self, x: Expr) -> Expr:
        return real_functions.erf(x)


class Sigmoid(Unary, name="tosa.sigmoid"):
    """1 / (1 + exp(-x))."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.reciprocal(1 + np.exp(-x))

    def scalar(self, x: Expr) -> Expr:
        return real_functions.sigmoid(x)


class Tanh(Unary, name="tosa.tanh"):
    """Hyperbolic tangent."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.tanh(x)

    def scalar(self, x: Expr) -> Expr:
        return real_functions.tanh(x)


class Clamp(Unary, name="tosa.clamp"):
    """The nearest number in [min_val, max_val]. A NaN stays, or with nan_mode IGNORE becomes min_val."""
    min_val: float = attribute("element")
    max_val: float = attribute("element")
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")
    results: ClassVar[Results] = alike(I8, I16) | WHOLE | FLOATS

    def infer(self, x: Operand) -> TensorType:
        check_nan_mode(self.nan_mode)
        found = self.result(x)
        require(not math.isnan(self.min_val) and not math.isnan(self.max_val),
                f"min_val {self.min_val} and max_val {self.max_val} must be numbers", kind="attribute")
        require(self.min_val <= self.max_val, f"min_val {self.min_val} is above max_val {self.max_val}",
                kind="attribute")
        if found.element.is_integer:
            for bound in (self.min_val, self.max_val):
                require(found.element.minimum <= bound <= found.element.maximum and bound == int(bound),
                        f"{bound} is not a value of {found.element}", kind="attribute")
        return found

    def exact(self, x: Array) -> Array:
        kept = np.where(np.isnan(x), self.min_val, x) if x.dtype.kind == "f" and self.nan_mode == "IGNORE" else x
        return np.clip(kept, self.min_val, self.max_val)

    def scalar(self, x: Expr) -> Expr:
        if is_integer(x):
            return clamp(x, int(self.min_val), int(self.max_val))
        if self.nan_mode == "IGNORE":  # max drops a NaN in its second operand
            return apply("min", apply("max", literal(self.min_val, x.dtype), x), literal(self.max_val, x.dtype))
        return clamp(x, self.min_val, self.max_val)
