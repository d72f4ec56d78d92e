"""Activation functions, including Softmax and its variants."""
from __future__ import annotations

import math

import numpy as np

from ....runtime.errors import Problem
from ...formulas.rounding import clamp
from ...formulas.softmax import log_softmax, softmax
from ...formulas.term import Term, absolute, erf, exp, maximum, minimum, select, sigmoid, tanh
from ...formulas.transcendental import expm1_below_half, log1p
from ...formulas.working_types import evaluated
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter
from .arithmetic import unary
from .functions import error_function, logistic
from .operator import Ints, Operator, operator


class Activation(Operator):
    """A function of one float with parameters: `function` in NumPy, in 64 bits, `formula` in terms."""
    consumed_inputs: Ints = ()

    def reference(self, x: Array) -> Array:
        return np.asarray(self.function(x.astype(np.float64) if x.dtype.kind not in "iu" else x), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        return evaluated(self.formula, e, (x,), integers=x.tensor.element.is_integer)

    def function(self, x: Array) -> Array:
        raise NotImplementedError

    def formula(self, x: Term) -> Term:
        raise NotImplementedError


@operator("Relu")
class Relu(Operator):
    consumed_inputs: Ints = ()

    def reference(self, x: Array) -> Array:
        return np.maximum(x, np.zeros((), x.dtype))

    def lower(self, e: Emitter, x: Value) -> Value:
        return clamp(Term(e, x), 0, math.inf).value if x.tensor.size else x


@operator("LeakyRelu")
class LeakyRelu(Activation):
    alpha: float = 0.01

    def function(self, x: Array) -> Array:
        return np.where(x < 0, x * self.alpha, x)

    def formula(self, x: Term) -> Term:
        return select(x < 0, x * self.alpha, x)


@operator("PRelu")
class PRelu(Operator):
    """PRelu. The slope broadcasts to x; before version 7 a slope of rank 1 was one number for each channel."""
    consumed_inputs: Ints = ()

    def reference(self, x: Array, slope: Array) -> Array:
        if self.version < 7 and slope.ndim == 1 and x.ndim > 1 and slope.size > 1:
            slope = slope.reshape(-1, *(1,) * (x.ndim - 2))
        return np.asarray(np.where(x < 0, x * slope, x), x.dtype)

    def lower(self, e: Emitter, x: Value, slope: Value) -> Value:
        if self.version < 7 and slope.tensor.rank == 1 and x.tensor.rank > 1 and slope.tensor.size > 1:
            slope = e.reshape(slope, (slope.tensor.size, *(1,) * (x.tensor.rank - 2)))
        return evaluated(lambda a, s: select(a < 0, a * s, a), e, (x, slope), integers=True)


@operator("Elu")
class Elu(Activation):
    alpha: float = 1.0

    def function(self, x: Array) -> Array:
        return np.where(x < 0, np.expm1(np.minimum(x, 0)) * self.alpha, x)

    def formula(self, x: Term) -> Term:
        return select(x < 0, expm1_below_half(minimum(x, 0)) * self.alpha, x)


@operator("Celu")
class Celu(Activation):
    alpha: float = 1.0

    def function(self, x: Array) -> Array:
        return np.maximum(x, 0) + np.minimum(0, self.alpha * np.expm1(np.minimum(x, 0) / self.alpha))

    def formula(self, x: Term) -> Term:
        return select(x < 0, expm1_below_half(minimum(x, 0) * (1 / self.alpha)) * self.alpha, x)


@operator("Selu")
class Selu(Activation):
    alpha: float = 1.67326319217681884765625
    gamma: float = 1.05070102214813232421875

    def function(self, x: Array) -> Array:
        return self.gamma * np.where(x < 0, np.expm1(np.minimum(x, 0)) * self.alpha, x)

    def formula(self, x: Term) -> Term:
        return select(x < 0, expm1_below_half(minimum(x, 0)) * self.alpha, x) * self.gamma


@operator("HardSigmoid")
class HardSigmoid(Activation):
    alpha: float = 0.2
    beta: float = 0.5

    def function(self, x: Array) -> Array:
        return np.clip(x * self.alpha + self.beta, 0, 1)

    def formula(self, x: Term) -> Term:
        return clamp(x * self.alpha + self.beta, 0, 1)


@operator("HardSwish")
class HardSwish(Activation):
    def function(self, x: Array) -> Array:
        return x * np.clip(x / 6 + 0.5, 0, 1)

    def formula(self, x: Term) -> Term:
        return x * clamp(x * (1 / 6) + 0.5, 0, 1)


@operator("ThresholdedRelu")
class ThresholdedRelu(Activation):
    alpha: float = 1.0

    def function(self, x: Array) -> Array:
        return np.where(x > self.alpha, x, 0)

    def formula(self, x: Term) -> Term:
        return select(x > self.alpha, x, 0)


@operator("Shrink")
class Shrink(Activation):
    bias: float = 0.0
    lambd: float = 0.5

    def function(self, x: Array) -> Array:
        return np.where(x < -self.lambd, x + self.bias, np.where(x > self.lambd, x - self.bias, 0))

    def formula(self, x: Term) -> Term:
        return select(x < -self.lambd, x + self.bias, select(x > self.lambd, x - self.bias, 0))


def softplus(x: Term) -> Term:
    return maximum(x, 0) + log1p(exp(-absolute(x)))


def soft_plus(x: Array) -> Array:
    return np.logaddexp(x.astype(np.float64), 0)


unary("Softplus", soft_plus, softplus)
unary("Softsign", lambda x: x / (1 + np.abs(x)), lambda x: x / (absolute(x) + 1))
unary("Mish", lambda x: x * np.tanh(soft_plus(x)), lambda x: x * tanh(softplus(x)))


@operator("Swish", "com.microsoft.QuickGelu")
class Swish(Activation):
    alpha: float = 1.0

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        own = getattr(self.operation.op, "properties", None) or {}
        if "alpha" not in own and "com.microsoft" in getattr(self.operation.op, "spelling", ""):
            self.alpha = 1.702

    def function(self, x: Array) -> Array:
        return x * logistic(x * self.alpha)

    def formula(self, x: Term) -> Term:
        return x * sigmoid(x * self.alpha if self.alpha != 1 else x)


@operator("Gelu", "com.microsoft.Gelu")
class Gelu(Activation):
    approximate: str = "none"

    def function(self, x: Array) -> Array:
        return by_tanh(x) if self.approximate == "tanh" else 0.5 * x * (1 + error_function(x / math.sqrt(2)))

    def formula(self, x: Term) -> Term:
        return gelu_by_tanh(x) if self.approximate == "tanh" else x * (erf(x * math.sqrt(0.5)) + 1) * 0.5


def by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_by_tanh(x: Term) -> Term:
    return x * 0.5 * (tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


@operator("com.microsoft.BiasGelu")
class BiasGelu(Operator):
    def reference(self, x: Array, bias: Array) -> Array:
        total = (x + bias).astype(np.float64)
        return np.asarray(0.5 * total * (1 + error_function(total / math.sqrt(2))), x.dtype)

    def lower(self, e: Emitter, x: Value, bias: Value) -> Value:
        return evaluated(lambda a, b: (a + b) * (erf((a + b) * math.sqrt(0.5)) + 1) * 0.5, e, (x, bias))


@operator("com.microsoft.FastGelu")
class FastGelu(Operator):
    def reference(self, x: Array, bias: Array | None = None) -> Array:
        total = (x if bias is None else x + bias).astype(np.float64)
        return np.asarray(by_tanh(total), x.dtype)

    def lower(self, e: Emitter, x: Value, bias: Value | None = None) -> Value:
        given = (x,) if bias is None else (x, bias)
        return evaluated(lambda a, *b: gelu_by_tanh(a + b[0] if b else a), e, given)


# ---- along axes ----------------------------------------------------------------------------------------------------------
class AlongAxis(Operator):
    """An operator along an axis; before version 13 along all axes from `axis` on, as one."""
    axis: int | None = None

    def first(self, rank: int) -> int:
        axis = (-1 if self.version >= 13 else 1) if self.axis is None else self.axis
        if not -rank <= axis <= max(rank - 1, 0 if self.version >= 13 else rank):
            raise Problem(f"axis {axis} is not one of a tensor of rank {rank}", kind="shape")
        return axis + rank if axis < 0 else axis

    def rows(self, x: Array) -> tuple[Array, int]:
        """Return x viewed so that the operator works along one axis, and that axis."""
        at = self.first(x.ndim)
        if self.version >= 13:
            return x, at
        return x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:])), 1

    def reference(self, x: Array) -> Array:
        if not x.size:
            return x
        seen, axis = self.rows(x)
        return np.asarray(self.function(seen.astype(np.float64), axis), x.dtype).reshape(x.shape)

    def lower(self, e: Emitter, x: Value) -> Value:
        if not x.tensor.size:
            return x
        dims, at = x.tensor.dims, self.first(x.tensor.rank)
        if self.version < 13 and math.prod(dims[at:]) != (dims[at] if at < len(dims) else 1):
            seen = e.reshape(x, (math.prod(dims[:at]), math.prod(dims[at:])))
            return e.reshape(evaluated(lambda a: self.formula(a, 1), e, (seen,)), dims)
        if not dims or at == len(dims):
            seen = e.reshape(x, (*dims, 1))
            return e.reshape(evaluated(lambda a: self.formula(a, len(dims)), e, (seen,)), dims)
        axis = at if self.version >= 13 else next((d for d in range(at, len(dims)) if dims[d] != 1), at)
        return evaluated(lambda a: self.formula(a, axis), e, (x,))

    def function(self, x: Array, axis: int) -> Array:
        raise NotImplementedError

    def formula(self, x: Term, axis: int) -> Term:
        raise NotImplementedError


@operator("Softmax")
class Softmax(AlongAxis):
    def function(self, x: Array, axis: int) -> Array:
        powers = np.exp(x - x.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)

    def formula(self, x: Term, axis: int) -> Term:
        return softmax(x, axis)


@operator("LogSoftmax")
class LogSoftmax(AlongAxis):
    def function(self, x: Array, axis: int) -> Array:
        distance = x - x.max(axis, keepdims=True)
        return distance - np.log(np.exp(distance).sum(axis, keepdims=True))

    def formula(self, x: Term, axis: int) -> Term:
        return log_softmax(x, axis)


@operator("Hardmax")
class Hardmax(AlongAxis):
    """1 at the first index of the greatest element, 0 elsewhere."""

    def function(self, x: Array, axis: int) -> Array:
        found = np.zeros_like(x)
        np.put_along_axis(found, np.expand_dims(x.argmax(axis), axis), 1, axis)
        return found

    def formula(self, x: Term, axis: int) -> Term:
        builder, dims = x.builder, x.value.tensor.dims
        places = builder.reshape(builder("argmax", x.value, axis=axis), [1 if d == axis else n for d, n in enumerate(dims)])
        numbers = np.arange(dims[axis], dtype=np.int32).reshape([-1 if d == axis else 1 for d in range(len(dims))])
        here = x.of(builder("equal", places, builder.constant(numbers)))
        return select(here, x.term(1), x.term(0))
