"""`tosaic.ops.special`: the functions of `scipy.special` with a formula here, with SciPy's names and arguments. They also run
where SciPy's own ufuncs are called on a traced tensor. Integers become f32 (SciPy makes doubles of them).

Bounds are those of f32, in units in the last place (ulp) over the whole range, measured against SciPy in double; those of f64
are twice as large unless stated otherwise. Half floats are computed in f32 and rounded once.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...lowering.formulas import bessel, error_functions, special_functions, statistics, transcendental
from ...lowering.formulas import term as terms
from ...lowering.formulas.term import Function, Term, absolute, reciprocal, select
from ...lowering.formulas.working_types import working_type
from ...lowering.graph.types import F32
from .conversion import axis_of, operands, tensor
from .layout import reshape, transpose
from .reduction import max as greatest
from .reduction import sum as total
from .tensor import Tensor
from .trace import recorded

Axes = int | Sequence[int] | None


def special(formula: Function, *values: Any, operator: str) -> Tensor:
    """Record a formula of broadcasting floats in the type that it computes in, and round to theirs."""
    given = operands(*values, operator=operator)
    element = given[0].element if given[0].element.is_float else F32
    working = working_type(element, integers=False, floats=True)
    return recorded(lambda *found: formula(*(x.cast(working) for x in found)).cast(element), *given)


# ---- the error function, the normal distribution -----------------------------------------------------------------
def erf(x: Any) -> Tensor:
    """The error function: 2 ulp."""
    return special(terms.erf, x, operator="erf")


def erfc(x: Any) -> Tensor:
    """1 - erf(x): 5 ulp, also in the tail."""
    return special(special_functions.erfc, x, operator="erfc")


def erfcx(x: Any) -> Tensor:
    """exp(x**2) * erfc(x): 5 ulp."""
    return special(error_functions.erfcx, x, operator="erfcx")


def erfinv(y: Any) -> Tensor:
    """The inverse of erf: 4 ulp. Infinite at -1 and 1, NaN beyond."""
    return special(error_functions.erfinv, y, operator="erfinv")


def erfcinv(y: Any) -> Tensor:
    """The inverse of erfc: 5 ulp. Infinite at 0 and 2, NaN beyond."""
    return special(error_functions.erfcinv, y, operator="erfcinv")


def ndtr(x: Any) -> Tensor:
    """The probability that a normally distributed number is below x: 5 ulp, also in the tail."""
    return special(error_functions.ndtr, x, operator="ndtr")


def log_ndtr(x: Any) -> Tensor:
    """The logarithm of `ndtr`: 6 ulp."""
    return special(error_functions.log_ndtr, x, operator="log_ndtr")


def ndtri(y: Any) -> Tensor:
    """The inverse of `ndtr`: 5 ulp. Infinite at 0 and 1, NaN beyond."""
    return special(error_functions.ndtri, y, operator="ndtri")


# ---- logits, exponentials, logarithms ----------------------------------------------------------------------------
def expit(x: Any) -> Tensor:
    """1 / (1 + exp(-x)): 2 ulp."""
    return special(statistics.expit, x, operator="expit")


def logit(x: Any) -> Tensor:
    """log(x / (1 - x)): 3 ulp. NaN outside [0, 1]."""
    return special(statistics.logit, x, operator="logit")


def log_expit(x: Any) -> Tensor:
    """The logarithm of `expit`: 3 ulp."""
    return special(statistics.log_expit, x, operator="log_expit")


def softplus(x: Any) -> Tensor:
    """log(1 + exp(x)): 3 ulp."""
    return special(statistics.softplus, x, operator="softplus")


def expm1(x: Any) -> Tensor:
    """exp(x) - 1: 4 ulp."""
    return special(transcendental.expm1, x, operator="expm1")


def log1p(x: Any) -> Tensor:
    """log(1 + x): 4 ulp."""
    return special(transcendental.log1p, x, operator="log1p")


def exprel(x: Any) -> Tensor:
    """(exp(x) - 1) / x: 4 ulp."""
    return special(statistics.exprel, x, operator="exprel")


def cosm1(x: Any) -> Tensor:
    """cos(x) - 1: 4 ulp up to |x| = 10000."""
    return special(statistics.cosm1, x, operator="cosm1")


def xlogy(x: Any, y: Any) -> Tensor:
    """x * log(y), 0 where x is 0 and y is a number: 2 ulp."""
    return special(statistics.xlogy, x, y, operator="xlogy")


def xlog1py(x: Any, y: Any) -> Tensor:
    """x * log(1 + y), 0 where x is 0 and y is a number: 4 ulp."""
    return special(statistics.xlog1py, x, y, operator="xlog1py")


# ---- entropies, losses, transformations --------------------------------------------------------------------------
def entr(x: Any) -> Tensor:
    """-x * log(x): 2 ulp. Minus infinity below 0."""
    return special(statistics.entr, x, operator="entr")


def rel_entr(x: Any, y: Any) -> Tensor:
    """x * log(x / y): 4 ulp. Infinite where this is undefined."""
    return special(statistics.rel_entr, x, y, operator="rel_entr")


def kl_div(x: Any, y: Any) -> Tensor:
    """x * log(x / y) - x + y, without cancellation where x is near y: 60 ulp. Infinite where this is undefined."""
    return special(statistics.kl_div, x, y, operator="kl_div")


def huber(delta: Any, r: Any) -> Tensor:
    """Huber's loss: 2 ulp."""
    return special(statistics.huber, delta, r, operator="huber")


def pseudo_huber(delta: Any, r: Any) -> Tensor:
    """A smooth loss like Huber's: 8 ulp, for results that are no smaller than 1e-35."""
    return special(statistics.pseudo_huber, delta, r, operator="pseudo_huber")


def boxcox(x: Any, lmbda: Any) -> Tensor:
    """(x**lmbda - 1) / lmbda, log(x) where lmbda is 0: |lmbda * log(x)| + 8 ulp."""
    return special(statistics.boxcox, x, lmbda, operator="boxcox")


def boxcox1p(x: Any, lmbda: Any) -> Tensor:
    """`boxcox` of 1 + x."""
    return special(statistics.boxcox1p, x, lmbda, operator="boxcox1p")


def inv_boxcox(y: Any, lmbda: Any) -> Tensor:
    """The inverse of `boxcox`: 2 |log(x)| + 8 ulp."""
    return special(statistics.inv_boxcox, y, lmbda, operator="inv_boxcox")


def inv_boxcox1p(y: Any, lmbda: Any) -> Tensor:
    """The inverse of `boxcox1p`."""
    return special(statistics.inv_boxcox1p, y, lmbda, operator="inv_boxcox1p")


# ---- gamma, Bessel -----------------------------------------------------------------------------------------------
def gammaln(x: Any) -> Tensor:
    """The logarithm of |gamma(x)|: 8 ulp, and near its zeros below 0 an absolute error of 1e-6 (f64: 1e-14)."""
    def formula(t: Term) -> Term:
        return select(t.equals(-math.inf), t, special_functions.log_gamma(t))
    return special(formula, x, operator="gammaln")


def digamma(x: Any) -> Tensor:
    """The derivative of `gammaln`: 16 ulp, and near its zeros an absolute error of 1e-6 (f64: 1e-12). NaN at -1, -2, ..."""
    def formula(t: Term) -> Term:
        return select(t.equals(0), -reciprocal(t), special_functions.digamma(t))
    return special(formula, x, operator="digamma")


def i0(x: Any) -> Tensor:
    """The modified Bessel function of order 0: 5 ulp. Infinite at infinity (SciPy: NaN)."""
    return special(bessel.i0, x, operator="i0")


def i0e(x: Any) -> Tensor:
    """exp(-|x|) * i0(x): 5 ulp."""
    return special(bessel.i0e, x, operator="i0e")


def i1(x: Any) -> Tensor:
    """The modified Bessel function of order 1: 5 ulp. Infinite at infinity (SciPy: NaN)."""
    return special(bessel.i1, x, operator="i1")


def i1e(x: Any) -> Tensor:
    """exp(-|x|) * i1(x): 5 ulp."""
    return special(bessel.i1e, x, operator="i1e")


# ---- along axes --------------------------------------------------------------------------------------------------
def softmax(x: Any, axis: Axes = None) -> Tensor:
    """exp(x) / sum(exp(x)) along axes; without `axis` along all. NaN where an element is infinite or all are minus infinity."""
    def formula(t: Term) -> Term:
        last = t.value.tensor.rank - 1
        powers = terms.exp(t - t.reduced("reduce_max", last))
        return powers / powers.reduced("reduce_sum", last)
    return along(formula, x, axis)


def log_softmax(x: Any, axis: Axes = None) -> Tensor:
    """The logarithm of `softmax`."""
    def formula(t: Term) -> Term:
        distance = t - shift(t)
        return distance - terms.log(terms.exp(distance).reduced("reduce_sum", t.value.tensor.rank - 1))
    return along(formula, x, axis)


def logsumexp(a: Any, axis: Axes = None, b: Any = None, keepdims: bool = False) -> Tensor:
    """log(sum(b * exp(a))) along axes; without `axis` along all."""
    x, *factors = operands(a, *([] if b is None else [b]), operator="logsumexp")
    x = special(lambda t: t, x, operator="logsumexp")
    high = special(lambda t: select(absolute(t) < math.inf, t, 0.0), greatest(x, axis, True), operator="logsumexp")
    powers = special(lambda t, m: terms.exp(t - m), x, high, operator="logsumexp")
    for factor in factors:
        powers = powers * factor
    found = special(lambda t, m: terms.log(t) + m, total(powers, axis, True), high, operator="logsumexp")
    return found if keepdims else reshape(found, total(x, axis).shape)


def shift(x: Term) -> Term:
    """Return the greatest element along the last axis; 0 where that is infinite, so that no infinities are subtracted."""
    high = x.reduced("reduce_max", x.value.tensor.rank - 1)
    return select(absolute(high) < math.inf, high, 0.0)


def along(formula: Callable[[Term], Term], x: Any, axis: Axes) -> Tensor:
    """Apply a formula of the last axis along the given axes, merged into the last."""
    given = tensor(x)
    axes = range(given.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    last = [axis_of(a, given.ndim) for a in axes]
    order = [a for a in range(given.ndim) if a not in last] + last
    rows = transpose(given, order)
    kept = rows.shape[:given.ndim - len(last)]
    found = special(formula, reshape(rows, (*kept, -1)), operator="softmax")
    return transpose(reshape(found, rows.shape), [order.index(a) for a in range(given.ndim)])


psi = digamma

__all__ = ["boxcox", "boxcox1p", "cosm1", "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "expit", "expm1",
           "exprel", "gammaln", "huber", "i0", "i0e", "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "kl_div", "log1p",
           "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "pseudo_huber", "psi", "rel_entr",
           "softmax", "softplus", "xlog1py", "xlogy"]
