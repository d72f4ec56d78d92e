"""Losses and operators for training: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss, Dropout; operators of random numbers,
which are refused."""
from __future__ import annotations

import math

import numpy as np

from ....runtime.errors import Problem
from ...formulas.division import divided
from ...formulas.indexing import gathered
from ...formulas.reductions import operator as one_operator
from ...formulas.reductions import reduced
from ...formulas.softmax import log_softmax
from ...formulas.term import Term, select
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I32, Array
from ..emitter import Emitter
from .operator import Operator, operator


class Loss(Operator):
    """A loss of log probabilities [N, C, ...] and the right classes [N, ...], with a weight for each class."""
    ignore_index: int | None = None
    reduction: str = "mean"

    def chosen(self, x: Array, target: Array, weight: Array | None) -> Array:
        """Return the loss in NumPy, in 64 bits."""
        ignored = np.zeros(target.shape, bool) if self.ignore_index is None else target == self.ignore_index
        classes = np.where(ignored, 0, target)
        own = -np.take_along_axis(x.astype(np.float64), np.expand_dims(classes, 1), 1).squeeze(1)
        factor = np.ones(target.shape) if weight is None else weight.astype(np.float64)[classes]
        factor = np.where(ignored, 0, factor)
        total = own * factor
        match self.reduction:
            case "none":
                return total
            case "sum":
                return np.asarray(total.sum())
            case "mean":
                return np.asarray(total.sum() / factor.sum() if weight is not None or self.ignore_index is not None
                                  else total.mean())
            case other:
                raise Problem(f"the reduction {other} is not known", kind="attribute", help="none, sum, mean")

    def lowered(self, e: Emitter, x: Value, target: Value, weight: Value | None) -> Value:
        """Return the same loss in TOSA, of logarithms in the working type."""
        n, classes, *inner = x.tensor.dims
        width = math.prod(inner)
        rows = e.reshape(e.transpose(e.reshape(x, (n, classes, width)), (0, 2, 1)), (n * width, classes, 1))
        given = Term(e, e.cast(e.reshape(target, (n * width, 1)), I32))
        is_ignored = None if self.ignore_index is None else given.equals(self.ignore_index)
        places = given if is_ignored is None else select(is_ignored, given.term(0), given)
        own = -Term(e, e.reshape(e("gather", rows, places.value), (n * width,)))
        factor = own.term(1).broadcast_to((n * width,))
        if weight is not None:
            flat = e.reshape(places.value, (n * width,))
            factor = Term(e, gathered(e, e.cast(weight, own.element), flat, 0))
        if is_ignored is not None:
            keeps = Term(e, e.reshape((~is_ignored).value, (n * width,)))
            factor = select(keeps, factor, 0)
        total = own * factor
        if self.reduction == "none":
            return e.reshape(total.value, (n, *inner))
        whole = self.sum_of(e, total)
        if self.reduction == "sum":
            return whole.value
        if self.reduction != "mean":
            raise Problem(f"the reduction {self.reduction} is not known", kind="attribute", help="none, sum, mean")
        weights = whole.term(n * width) if weight is None and is_ignored is None else self.sum_of(e, factor)
        return divided(whole, weights).value

    def sum_of(self, e: Emitter, x: Term) -> Term:
        return Term(e, e.reshape(reduced(e, x.value, (0,), one_operator("reduce_sum"), 0), ()))


@operator("NegativeLogLikelihoodLoss")
class NegativeLogLikelihoodLoss(Loss):
    def reference(self, x: Array, target: Array, weight: Array | None = None) -> Array:
        return np.asarray(self.chosen(x, target, weight), x.dtype)

    def lower(self, e: Emitter, x: Value, target: Value, weight: Value | None = None) -> Value:
        wide = e.cast(x, working_type(x.tensor.element, False, True))
        return e.cast(self.lowered(e, wide, target, weight), x.tensor.element)


@operator("SoftmaxCrossEntropyLoss")
class SoftmaxCrossEntropyLoss(Loss):
    """A cross-entropy loss, with the log probabilities as second result."""

    def reference(self, x: Array, target: Array, weight: Array | None = None) -> tuple[Array, Array]:
        wide = x.astype(np.float64)
        distance = wide - wide.max(1, keepdims=True)
        logarithms = distance - np.log(np.exp(distance).sum(1, keepdims=True))
        return np.asarray(self.chosen(logarithms, target, weight), x.dtype), np.asarray(logarithms, x.dtype)

    def lower(self, e: Emitter, x: Value, target: Value, weight: Value | None = None) -> tuple[Value, Value]:
        own, (n, classes, *inner) = x.tensor.element, x.tensor.dims
        wide = e.cast(e.reshape(x, (n, classes, math.prod(inner))), working_type(own, False, True))
        logarithms = e.reshape(log_softmax(Term(e, wide), 1).value, x.tensor.dims)
        return e.cast(self.lowered(e, logarithms, target, weight), own), e.cast(logarithms, own)


# ---- training, and random numbers ----------------------------------------------------------------------------------------
@operator("Dropout")
class Dropout(Operator):
    """Dropout outside of training, where nothing is dropped. The ratio was an attribute before version 12; the mask is all
    true."""
    ratio: float = 0.5
    seed: int | None = None
    is_test: int = 0
    consumed_inputs: tuple[int, ...] = ()

    def reference(self, x: Array, ratio: Array | None = None, training: Array | None = None) -> tuple[Array, Array]:
        if training is not None and bool(np.reshape(training, ())) and (0.5 if ratio is None else float(np.reshape(ratio, ()))):
            raise random_numbers("Dropout in training")
        return x, np.ones(x.shape, bool if self.version >= 10 else x.dtype)

    def lower(self, e: Emitter, x: Value, ratio: Value | None = None, training: Value | None = None) -> tuple[Value, Value]:
        if training is not None and (training.constant is None or training.constant.reshape(()).item()):
            drops = 0.5 if ratio is None else None if ratio.constant is None else float(ratio.constant.reshape(()))
            if drops is None or drops:
                raise random_numbers("Dropout in training")
        one = np.array(True) if self.version >= 10 else np.ones((), x.tensor.element.dtype)
        return x, e.broadcast_to(e.constant(one), x.tensor.dims)


def random_numbers(what: str) -> Problem:
    return Problem(f"{what} gives other numbers each time", kind="unsupported",
                   help="draw them outside of the model, and give them as an input")


def refused_as_random(name: str) -> None:
    """Register an operator of random numbers: known by name, and refused."""
    class One(Operator):
        is_random = True

        def __init__(self, operation: object, version: int, inside: object = None) -> None:
            self.operation, self.version = operation, version  # type: ignore[assignment]

        def reference(self, *arrays: Array) -> Array:
            raise random_numbers(name)

        def lower(self, e: Emitter, *values: Value) -> Value:
            raise random_numbers(name)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


for each in ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"):
    refused_as_random(each)
