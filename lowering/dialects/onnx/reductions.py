"""Reductions along axes, which are an attribute in older versions and an operand in later ones."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...formulas.division import divided, square_root
from ...formulas.reductions import OneAxis, greatest, least, reduced, reduced_product, type_of_sum
from ...formulas.reductions import operator as one_operator
from ...formulas.softmax import log_sum_exp
from ...formulas.term import Term, absolute, log
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I1, Array, ElementType
from ..emitter import Emitter, axes_of
from .operator import Ints, Operator, operator


class Reduction(Operator):
    """A reduction along `axes`: all of them if none are given, unless `noop_with_empty_axes` makes the node an identity
    then."""
    axes: Ints | None = None
    keepdims: int = 1
    noop_with_empty_axes: int = 0

    def chosen(self, rank: int, given: Sequence[int] | None) -> tuple[int, ...] | None:
        """Return the axes; None if the node is an identity."""
        axes = self.axes if given is None else tuple(given)
        if not axes:
            return None if self.noop_with_empty_axes else tuple(range(rank))
        for axis in axes:
            if not -rank <= axis < rank:
                raise ValueError(f"axis {axis} is not one of a tensor of rank {rank}")
        return tuple(sorted({a % rank for a in axes}))

    def reference(self, x: Array, axes: Array | None = None) -> Array:
        chosen = self.chosen(x.ndim, None if axes is None else [int(a) for a in axes])
        if chosen is None:
            return np.asarray(self.alone(x), x.dtype)
        return np.asarray(self.function(x, chosen, bool(self.keepdims)), x.dtype)

    def lower(self, e: Emitter, x: Value, axes: Value | None = None) -> Value:
        given = None if axes is None else axes_of(axes, x.tensor.rank)
        chosen = self.chosen(x.tensor.rank, given)
        element = x.tensor.element
        wide = e.cast(x, self.working(element))
        if chosen is None:
            return e.cast(self.lowered_alone(e, wide), element)
        found = self.along(e, wide, chosen)
        dims = [1 if a in chosen else n for a, n in enumerate(x.tensor.dims) if self.keepdims or a not in chosen]
        return e.reshape(e.cast(found, element), dims)

    def working(self, element: ElementType) -> ElementType:
        return working_type(element, True, True)

    def function(self, x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        raise NotImplementedError

    def alone(self, x: Array) -> Array:
        """Return the result of a node without axes: of each element alone."""
        return self.function(x[None], (0,), False)

    def along(self, e: Emitter, x: Value, axes: tuple[int, ...]) -> Value:
        raise NotImplementedError

    def lowered_alone(self, e: Emitter, x: Value) -> Value:
        return e.reshape(self.along(e, e.reshape(x, (1, *x.tensor.dims)), (0,)), x.tensor.dims)


def wide(x: Array) -> Array:
    """Return floats in 64 bits."""
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


Before = Callable[[Term], Term]


def sums(name: str, function: Callable[..., Array], before: Before = lambda x: x, after: Before = lambda x: x) -> None:
    """Register a sum of a function of each element, and a function of the sum."""
    class One(Reduction):
        def function(self, x: Array, axes: tuple[int, ...], keep: bool) -> Array:
            return function(wide(x), axis=axes, keepdims=keep)

        def along(self, e: Emitter, x: Value, axes: tuple[int, ...]) -> Value:
            total = reduced(e, before(Term(e, x)).value, axes, one_operator("reduce_sum"), 0)
            return after(Term(e, total)).value
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


def root(x: Term) -> Term:
    """Return the square root; for integers rounded toward zero, by way of floats."""
    from ...graph.types import F32
    return square_root(x) if x.element.is_float else square_root(x.cast(F32)).cast(x.element)


def logarithm(x: Term) -> Term:
    from ...graph.types import F32
    return log(x) if x.element.is_float else log(x.cast(F32)).cast(x.element)


def sum_of(x: Array, **options: object) -> Array:
    return np.asarray(np.sum(x, dtype=x.dtype, **options))  # type: ignore[call-overload]


sums("ReduceSum", sum_of)
sums("ReduceL1", lambda x, **o: sum_of(np.abs(x), **o), before=absolute)
sums("ReduceL2", lambda x, **o: np.sqrt(sum_of(x * x, **o)), before=lambda x: x * x, after=root)
sums("ReduceSumSquare", lambda x, **o: sum_of(x * x, **o), before=lambda x: x * x)
sums("ReduceLogSum", lambda x, **o: np.log(sum_of(x, **o)), after=logarithm)


def extremes(name: str, function: Callable[..., Array], one: OneAxis, empty: Callable[[Value], float], of_bools: str) -> None:
    class One(Reduction):
        def function(self, x: Array, axes: tuple[int, ...], keep: bool) -> Array:
            if x.dtype == bool:
                return np.asarray((np.any if of_bools == "reduce_any" else np.all)(x, axis=axes, keepdims=keep))
            start = -np.inf if of_bools == "reduce_any" else np.inf
            if x.dtype.kind in "iu":
                bounds = np.iinfo(x.dtype)
                start = bounds.min if of_bools == "reduce_any" else bounds.max
            return function(x, axis=axes, keepdims=keep, initial=np.asarray(start, x.dtype))

        def working(self, element: ElementType) -> ElementType:
            return element if element == I1 or element.kind == "signed" else working_type(element, True, True)

        def along(self, e: Emitter, x: Value, axes: tuple[int, ...]) -> Value:
            if x.tensor.element == I1:
                return reduced(e, x, axes, one_operator(of_bools), of_bools == "reduce_all")
            return reduced(e, x, axes, one, empty(x))
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


extremes("ReduceMax", np.max, one_operator("reduce_max"), least, "reduce_any")
extremes("ReduceMin", np.min, one_operator("reduce_min"), greatest, "reduce_all")


@operator("ReduceProd")
class ReduceProd(Reduction):
    def function(self, x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        return np.asarray(np.prod(wide(x), axis=axes, keepdims=keep, dtype=wide(x).dtype))

    def along(self, e: Emitter, x: Value, axes: tuple[int, ...]) -> Value:
        return reduced(e, x, axes, reduced_product, 1)


@operator("ReduceMean")
class ReduceMean(Reduction):
    """The mean; for integers rounded toward zero."""

    def function(self, x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        if x.dtype.kind in "iu":
            count = max(math.prod(x.shape[a] for a in axes), 1)
            return np.trunc(np.sum(x.astype(np.float64), axis=axes, keepdims=keep) / count)
        return np.asarray(np.mean(wide(x), axis=axes, keepdims=keep))

    def along(self, e: Emitter, x: Value, axes: tuple[int, ...]) -> Value:
        count = math.prod(x.tensor.dims[a] for a in axes)
        if x.tensor.element.is_integer:
            total = reduced(e, e.cast(x, type_of_sum(x.tensor.element, count)), axes, one_operator("reduce_sum"), 0)
            return e.cast(e("intdiv", total, e.splat(max(count, 1), total)), x.tensor.element)
        total = reduced(e, x, axes, one_operator("reduce_sum"), math.nan)
        return divided(Term(e, total), Term(e, e.splat(count, total))).value


@operator("ReduceLogSumExp")
class ReduceLogSumExp(Reduction):
    def function(self, x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        top = np.max(x.astype(np.float64), axis=axes, keepdims=True, initial=-np.inf)
        finite = np.where(np.isfinite(top), top, 0)
        found = np.log(np.sum(np.exp(x - finite), axis=axes, keepdims=True)) + finite
        return found if keep else found.reshape([n for a, n in enumerate(found.shape) if a not in axes])

    def along(self, e: Emitter, x: Value, axes: tuple[int, ...]) -> Value:
        if not x.tensor.size:
            return reduced(e, x, axes, one_operator("reduce_sum"), -math.inf)
        order = [*(a for a in range(x.tensor.rank) if a not in axes), *axes]
        kept = [x.tensor.dims[a] for a in order[:len(order) - len(axes)]]
        rows = e.reshape(e.transpose(x, order), (math.prod(kept), math.prod(x.tensor.dims[a] for a in axes)))
        return log_sum_exp(Term(e, rows), 1).value
