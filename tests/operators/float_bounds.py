"""How far a float result may be from the exact one: the specification's bounds for elementwise operators, in float64.

Each takes the exact result and the operands. TOSA 1.0, precision requirements of the operators.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tosaic.lowering.graph.types import BF16, F16, F32, F64, Array, ElementType

FRACTION = {F64: 52, F32: 23, F16: 10, BF16: 7}
NORMAL_MINIMUM = {F64: 2.0**-1022, F32: 2.0**-126, F16: 2.0**-14, BF16: 2.0**-126}
Bound = Callable[..., Array]


def quiet(bound: Bound) -> Bound:
    """Without warnings where an operand is beyond the range."""
    def computed(*arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return bound(*arrays)
    return computed


def absolute(element: ElementType, magnitude: Array, units: Array | float, floor: float = 0.0, divisor: float = 1.0
             ) -> Array:
    """`units` units of the last place of `magnitude`, at least as many as `floor` gives at 1."""
    value = np.maximum(np.maximum(np.abs(magnitude), NORMAL_MINIMUM[element]), floor / units if floor else 0.0)
    return np.where(np.isfinite(units) | (magnitude != 0), 2.0 ** (-FRACTION[element] / divisor) * value * units, 0.0)


def ulps(element: ElementType, count: float) -> Bound:
    def bound(exact: Array, *_: Array) -> Array:
        magnitude = np.where(np.isfinite(exact), np.abs(exact), 1.0)
        power = np.maximum(2.0 ** np.floor(np.log2(np.maximum(magnitude, 5e-324))), NORMAL_MINIMUM[element])
        return np.where(magnitude == 0, 0.0, power * 2.0 ** -FRACTION[element] * count)

    return quiet(bound)


def double(exact: Array, *operands: Array) -> Array:
    """Of functions of f64, which TOSA does not have: 4 units of the last place, and as many for NumPy, which gives the exact
    result here."""
    return np.maximum(ulps(F64, 8.0)(exact), 8 * 2.0**-1074)


def exp_units(element: ElementType, x: Array) -> Array:
    return (3 if element == F32 else 1) + 2 * np.abs(x)


def exp(element: ElementType) -> Bound:
    return quiet(lambda exact, x: absolute(element, exact, exp_units(element, x)))


def log(element: ElementType) -> Bound:
    return quiet(lambda exact, x: absolute(element, exact, 5.0, 0.5))


def tanh(element: ElementType) -> Bound:
    return quiet(lambda exact, x: absolute(element, exact, 4 * exp_units(element, x), 0.5))


def sigmoid(element: ElementType) -> Bound:
    return quiet(lambda exact, x: absolute(element, exact, 2 * (1 + np.abs(x))))


def sin(element: ElementType) -> Bound:
    return quiet(lambda exact, x: np.maximum(absolute(element, x, 2.0, divisor=2), np.pi * NORMAL_MINIMUM[element]))


def cos(element: ElementType) -> Bound:
    return quiet(lambda exact, x: absolute(element, 1 + np.abs(x), 1.0, divisor=2))


def power(element: ElementType) -> Bound:
    def bound(exact: Array, x: Array, y: Array) -> Array:
        product = y * np.log(x)
        magnitude = np.maximum(np.maximum(np.abs(product), NORMAL_MINIMUM[element]), np.abs(0.55 * y) / 5.5)
        product_error = 2.0 ** -FRACTION[element] * magnitude * 5.5
        exp_error = absolute(element, exact, exp_units(element, np.abs(product + product_error)))
        return exact * np.expm1(product_error) + exp_error

    return quiet(bound)
