"""Normalisations: BatchNormalization, InstanceNormalization, LpNormalization, LRN. ONNX defines the others by other operators,
which are inlined."""
from __future__ import annotations

import math

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.division import divided, square_root
from ...formulas.layout import padded, part
from ...formulas.reductions import operator as one_operator
from ...formulas.reductions import reduced
from ...formulas.term import Term, absolute, select
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter
from .along_axis import axis_of
from .operator import Ints, Operator, operator
from .pools import norm

FAR = 16.0
"""Maximum ratio of a mean to the scale of the result for products with folded constants: their rounding is a part in 2**24 of
it."""


def channelwise(vector: Array, rank: int) -> Array:
    """Return a vector of one number per channel, reshaped so that it broadcasts to [N, C, ...]."""
    return vector.reshape(-1, *(1,) * (rank - 2)) if rank > 1 else vector


@operator("BatchNormalization")
class BatchNormalization(Operator):
    """Batch normalisation with the given statistics, or in training with those of the batch, of which it returns running
    ones."""
    epsilon: float = 1e-5
    momentum: float = 0.9
    training_mode: int = 0
    spatial: int = 1
    is_test: int = 0
    consumed_inputs: Ints = ()

    @property
    def trains(self) -> bool:
        return bool(self.training_mode) if self.version >= 14 else self.results > 1

    def reference(self, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
        wide = x.astype(np.float64)
        own_mean, own_variance = mean.astype(np.float64), variance.astype(np.float64)
        if self.trains:
            axes = tuple(a for a in range(x.ndim) if a != 1)
            own_mean, own_variance = wide.mean(axes), wide.var(axes)
        columns = [channelwise(v.astype(np.float64), x.ndim) for v in (scale, bias, own_mean, own_variance)]
        y = (wide - columns[2]) / np.sqrt(columns[3] + self.epsilon) * columns[0] + columns[1]
        running = [(old * self.momentum + new * (1 - self.momentum)).astype(old.dtype)
                   for old, new in ((mean, own_mean), (variance, own_variance))]
        return (y.astype(x.dtype), *running) if self.trains else (y.astype(x.dtype),)

    def lower(self, e: Emitter, x: Value, scale: Value, bias: Value, mean: Value, variance: Value) -> tuple[Value, ...]:
        if not self.spatial:
            raise Problem("statistics of each element are of old versions, and have no place here", kind="unsupported")
        if self.trains and self.version < 14:
            raise Problem("training before version 14 has no place here", kind="unsupported",
                          help="export the model for inference")
        own, rank = x.tensor.element, x.tensor.rank
        require(rank > 1, f"it takes batch and channels, not {x.type}", kind="shape")
        working = working_type(own, False, True)
        wide = e.cast(x, working)
        given = [Term(e, e.cast(e.reshape(v, (v.tensor.size, *(1,) * (rank - 2))), working))
                 for v in (scale, bias, mean, variance)]
        running: list[Value] = []
        if self.trains:
            given[2:], running = self.of_batch(e, Term(e, wide), given[2], given[3], (mean, variance))
        y = self.normalized(e, Term(e, wide), *given)
        return (e.cast(y.value, own), *running)

    def of_batch(self, e: Emitter, x: Term, mean: Term, variance: Term,
                 old: tuple[Value, Value]) -> tuple[list[Term], list[Value]]:
        """Return the batch's own statistics, and the running ones."""
        axes = [a for a in range(x.value.tensor.rank) if a != 1]
        own_mean = average(e, x, axes)
        centred = x - own_mean
        own_variance = average(e, centred * centred, axes)
        shape = (old[0].tensor.dims[0],)
        statistics = [Term(e, e.reshape(v.value, mean.value.tensor.dims)) for v in (own_mean, own_variance)]
        running = [e.cast(e.reshape((o * self.momentum + n * (1 - self.momentum)).value, shape), v.tensor.element)
                   for o, n, v in zip((mean, variance), statistics, old)]
        return statistics, running

    def normalized(self, e: Emitter, x: Term, scale: Term, bias: Term, mean: Term, variance: Term) -> Term:
        """Return (x - mean) / root(variance + epsilon) * scale + bias; with known statistics one product and one sum."""
        data = [v.value.constant for v in (scale, bias, mean, variance)]
        if all(d is not None for d in data):
            s, b, m, v = (np.asarray(d, np.float64) for d in data)
            factor = s / np.sqrt(v + self.epsilon)
            if np.all(np.abs(factor * m) <= FAR * (np.abs(s) + np.abs(b))):
                dtype = x.element.dtype
                return x * x.of(e.constant(factor.astype(dtype))) + x.of(e.constant((b - m * factor).astype(dtype)))
            return (x - mean) * x.of(e.constant(factor.astype(x.element.dtype))) + bias
        return (x - mean) * divided(scale, square_root(variance + self.epsilon)) + bias


def average(e: Emitter, x: Term, axes: list[int]) -> Term:
    """Return the mean along axes, which stay with extent 1."""
    total = Term(e, reduced(e, x.value, axes, one_operator("reduce_sum"), math.nan))
    return divided(total, total.term(math.prod(x.value.tensor.dims[a] for a in axes)))


@operator("InstanceNormalization")
class InstanceNormalization(Operator):
    """Each channel of each image normalised with its own statistics."""
    epsilon: float = 1e-5
    consumed_inputs: Ints = ()

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        axes, wide = tuple(range(2, x.ndim)), x.astype(np.float64)
        own = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + self.epsilon)
        return np.asarray(own * channelwise(scale, x.ndim) + channelwise(bias, x.ndim), x.dtype)

    def lower(self, e: Emitter, x: Value, scale: Value, bias: Value) -> Value:
        own, rank = x.tensor.element, x.tensor.rank
        require(rank > 2, f"it takes batch, channels and spatial axes, not {x.type}", kind="shape")
        wide = Term(e, e.cast(x, working_type(own, False, True)))
        axes = list(range(2, rank))
        centred = wide - average(e, wide, axes)
        deviation = square_root(average(e, centred * centred, axes) + self.epsilon)
        columns = [wide.of(e.cast(e.reshape(v, (v.tensor.size, *(1,) * (rank - 2))), wide.element)) for v in (scale, bias)]
        return e.cast((divided(centred, deviation) * columns[0] + columns[1]).value, own)


@operator("LpNormalization")
class LpNormalization(Operator):
    """x divided by its norm along an axis; where the norm is 0 the result is 0."""
    axis: int = -1
    p: int = 2

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        length = np.sum(np.abs(wide) ** self.p, self.axis, keepdims=True) ** (1 / self.p)
        return np.asarray(np.where(length == 0, 0, wide / np.where(length == 0, 1, length)), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        axis = axis_of(self.axis, x.tensor.rank)
        wide = Term(e, e.cast(x, working_type(x.tensor.element, False, True)))
        length = norm(e, wide, self.p, [axis])
        is_zero = length.equals(0)
        found = select(is_zero, wide.term(0), divided(wide, select(is_zero, length.term(1), length)))
        return e.cast(found.value, x.tensor.element)


@operator("LRN")
class LRN(Operator):
    """x / (bias + alpha / size * s) ** beta, s the sum of squares of the neighbouring channels."""
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        squares = np.zeros_like(wide)
        for c in range(x.shape[1]):
            first, last = c - (self.size - 1) // 2, c + -(-(self.size - 1) // 2)
            squares[:, c] = (wide[:, max(first, 0):last + 1] ** 2).sum(1)
        return np.asarray(wide / (self.bias + self.alpha / self.size * squares) ** self.beta, x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        own, rank = x.tensor.element, x.tensor.rank
        require(rank > 2 and self.size > 0, f"it takes batch, channels and spatial axes, not {x.type}", kind="shape")
        wide = Term(e, e.cast(x, working_type(own, False, True)))
        before, channels = (self.size - 1) // 2, x.tensor.dims[1]
        border = [(before, self.size - 1 - before) if a == 1 else (0, 0) for a in range(rank)]
        squares = padded(e, (wide * wide).value, border)
        total = Term(e, part(e, squares, 1, 0, channels))
        for k in range(1, self.size):
            total = total + Term(e, part(e, squares, 1, k, k + channels))
        base = absolute(total * (self.alpha / self.size) + self.bias)
        return e.cast((wide * base.apply("pow", base.term(-self.beta))).value, own)
