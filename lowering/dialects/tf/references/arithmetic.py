"""Arithmetic, comparisons, rounding, casts: one element of the result from one of each operand."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....graph.graph import Operation
from ....graph.types import Array, TensorType
from .table import elementwise, reference


def rounded(x: Array) -> Array:
    """Return x rounded half to even; integers are rounded already."""
    return x if x.dtype.kind in "iu" else np.rint(x)


def shifted(shift: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Return a shift whose amount is clamped to the width of the type, as in TensorFlow."""
    def function(x: Array, by: Array) -> Array:
        return shift(x, np.clip(by, 0, 8 * x.dtype.itemsize - 1))
    return function


FUNCTIONS: dict[str, Callable[..., Array]] = {
        "AddV2": np.add, "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Neg": np.negative, "Abs": np.abs,
        "Square": np.square, "Sign": np.sign, "Exp": np.exp, "Log": np.log, "Log1p": np.log1p, "Expm1": np.expm1,
        "Sqrt": np.sqrt, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
        "Atan2": np.arctan2, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh,
        "Atanh": np.arctanh, "Floor": np.floor, "Ceil": np.ceil, "Round": rounded, "Rint": rounded, "Maximum": np.maximum,
        "Minimum": np.minimum, "Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less, "LessEqual": np.less_equal,
        "Greater": np.greater, "GreaterEqual": np.greater_equal, "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or,
        "LogicalNot": np.logical_not, "IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite,
        "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor, "Invert": np.invert,
        "LeftShift": shifted(np.left_shift), "RightShift": shifted(np.right_shift), "SelectV2": np.where}
for name, function in FUNCTIONS.items():
    elementwise(function, f"tf.{name}")


@reference("tf.Identity", "tf.StopGradient", "tf.PreventGradient", "tf.Snapshot", "tf.EnsureShape", "tf.CheckNumerics")
def identity(operation: Operation, x: Any, *rest: Any) -> Any:
    return x


@reference("tf.IdentityN")
def identities(operation: Operation, *values: Any) -> tuple[Any, ...]:
    return values


@reference("tf.Reciprocal", "tf.Inv")
def reciprocal(operation: Operation, x: Array) -> Array:
    return np.asarray(1, x.dtype) / x


@reference("tf.Rsqrt")
def rsqrt(operation: Operation, x: Array) -> Array:
    return np.asarray(1, x.dtype) / np.sqrt(x)


@reference("tf.Erf")
def erf(operation: Operation, x: Array) -> Array:
    return each(x, "erf")


@reference("tf.Erfc")
def erfc(operation: Operation, x: Array) -> Array:
    return each(x, "erfc")


@reference("tf.Lgamma")
def lgamma(operation: Operation, x: Array) -> Array:
    return each(x, "lgamma")


def each(x: Array, name: str) -> Array:
    """Apply a function of Python's `math` to each element, in 64 bits."""
    import math
    function = getattr(math, name)

    def value(v: float) -> float:
        try:
            return float(function(v))
        except (ValueError, OverflowError):
            return math.inf
    wide = [value(v) for v in x.astype(np.float64).reshape(-1).tolist()]
    return np.array(wide, np.float64).reshape(x.shape).astype(x.dtype)


@reference("tf.RealDiv")
def real_div(operation: Operation, x: Array, y: Array) -> Array:
    return x / y


@reference("tf.Div", "tf.TruncateDiv")
def truncate_div(operation: Operation, x: Array, y: Array) -> Array:
    """Return the quotient; toward zero for integers."""
    if x.dtype.kind not in "iu":
        return x / y
    check_divisor(y)
    return np.floor_divide(x - np.fmod(x, y), y)


@reference("tf.TruncateMod", "tf.Mod")
def truncate_mod(operation: Operation, x: Array, y: Array) -> Array:
    """Return the remainder with the sign of x."""
    check_divisor(y)
    return np.fmod(x, y)


@reference("tf.FloorDiv")
def floor_div(operation: Operation, x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        check_divisor(y)
        return x // y
    return np.floor(x / y)


@reference("tf.FloorMod")
def floor_mod(operation: Operation, x: Array, y: Array) -> Array:
    """Return the remainder with the sign of y."""
    check_divisor(y)
    return np.mod(x, y)


def check_divisor(y: Array) -> None:
    from .....runtime.errors import Problem
    if y.dtype.kind in "iu" and not np.all(y):
        raise Problem("integer division by zero", kind="argument")


@reference("tf.DivNoNan")
def div_no_nan(operation: Operation, x: Array, y: Array) -> Array:
    """0 where y is 0."""
    return np.where(y == 0, np.zeros((), x.dtype), x / np.where(y == 0, np.ones((), y.dtype), y))


@reference("tf.MulNoNan")
def mul_no_nan(operation: Operation, x: Array, y: Array) -> Array:
    """0 where y is 0, even for an infinite x."""
    return np.where(y == 0, np.zeros((), x.dtype), x * y)


@reference("tf.Xdivy")
def xdivy(operation: Operation, x: Array, y: Array) -> Array:
    """0 where x is 0."""
    return np.where(x == 0, np.zeros((), x.dtype), x / y)


@reference("tf.Xlogy")
def xlogy(operation: Operation, x: Array, y: Array) -> Array:
    """0 where x is 0."""
    return np.where(x == 0, np.zeros((), x.dtype), x * np.log(y))


@reference("tf.Pow")
def power(operation: Operation, x: Array, y: Array) -> Array:
    """Give each element its own exponent: for a scalar 0.5 NumPy computes a square root, which is NaN for -inf."""
    return np.power(x, np.array(np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape))))


@reference("tf.SquaredDifference")
def squared_difference(operation: Operation, x: Array, y: Array) -> Array:
    return np.square(x - y)


@reference("tf.AddN")
def add_n(operation: Operation, first: Array, *rest: Array) -> Array:
    total = first
    for x in rest:
        total = total + x
    return total


@reference("tf.ClipByValue")
def clip_by_value(operation: Operation, x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


@reference("tf.Select")
def select(operation: Operation, condition: Array, x: Array, y: Array) -> Array:
    """Select elements; a condition of rank 1 selects whole rows."""
    if condition.ndim == 1 < x.ndim:
        condition = condition.reshape(-1, *[1] * (x.ndim - 1))
    return np.where(condition, x, y)


@reference("tf.Cast")
def cast(operation: Operation, x: Any) -> Any:
    """Convert elements; from floats to integers toward zero."""
    type = operation.results[0].type
    if not isinstance(x, np.ndarray) or not isinstance(type, TensorType):
        return x
    return x.astype(type.element.dtype)
