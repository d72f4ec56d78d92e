"""Histograms, and covariances of several variables. NumPy's names. Integers become f32 for means and for edges in steps."""
from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from ...lowering.formulas.tosa_builder import is_narrow
from ...lowering.graph.types import F32, F64, I32
from .arithmetic import (
    add,
    clip,
    divide,
    equal,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    subtract,
    where,
)
from .contractions import convolve, factors, matmul
from .conversion import converted, is_number, tensor
from .creation import arange, full, linspace
from .functions import sqrt
from .layout import concatenate, flip, reshape, squeeze, transpose
from .rearranging import atleast_2d, diag
from .reduction import max, mean, min, sum
from .sorting import searchsorted
from .tensor import Tensor
from .trace import problem


def wide(x: Tensor) -> Tensor:
    """Return narrow integers in i32, as an edge may be beyond their range."""
    return converted(x, I32) if is_narrow(x.element) or x.element.kind == "bool" else x


# ---- between edges -----------------------------------------------------------------------------------------------
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Bin numbers of the elements among the edges `bins`, which increase or decrease, in i32: 0 before all edges, the number of
    edges after all. An element equal to an edge is above it, or with `right` below."""
    edges, found = tensor(bins), wide(tensor(x))
    if edges.ndim != 1 or not edges.size:
        raise problem(f"digitize has a vector of edges, not {edges.type}", "shape")
    rising = searchsorted(bins, found, "left" if right else "right")
    if not isinstance(bins, Tensor):
        steps = np.diff(np.asarray(bins))
        if (steps >= 0).all():
            return rising
        if (steps > 0).any():
            raise problem("the edges of digitize increase or decrease", "argument", help="numpy.sort them first")
    falling = subtract(edges.size, searchsorted(flip(edges), found, "left" if right else "right"))
    return where(less_equal(edges[0], edges[-1]), rising, falling) if isinstance(bins, Tensor) else falling


class CountsAndEdges(NamedTuple):
    """Result of `histogram`."""
    hist: Tensor
    bin_edges: Tensor


def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> CountsAndEdges:
    """Number of elements between each two neighbouring edges, in i32, and the edges. `bins` is the number of bins between the
    two ends of `range`, by default the least and the greatest element; or the increasing edges themselves. Each element counts
    1, or its weight. With `density` the integral is 1. Each element is compared with each edge."""
    x = wide(reshape(tensor(a), -1))
    edges = histogram_bin_edges(x, bins, range)
    x, compared = factors("histogram", x, edges)
    row, low, high = reshape(x, (1, -1)), reshape(compared[:-1], (-1, 1)), reshape(compared[1:], (-1, 1))
    is_last = np.arange(edges.size - 1).reshape(-1, 1) == edges.size - 2
    inside = logical_and(greater_equal(row, low), logical_or(less(row, high), logical_and(is_last, equal(row, high))))
    if weights is None:
        counts = sum(inside, 1)
    else:
        w = tensor(weights)
        if w.size != x.size:
            raise problem(f"histogram of {tensor(a).type} with weights {w.type}: their shapes differ", "shape")
        counts = sum(where(inside, reshape(w, (1, -1)), tensor(0, w.element)), 1)
    if density:
        widths = subtract(edges[1:], edges[:-1])
        counts = divide(divide(counts, widths), sum(counts))
    return CountsAndEdges(counts, edges)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """Edges of the bins of `histogram`."""
    if isinstance(bins, str):
        raise problem(f"the number of bins of histogram is not known of {bins!r}: it depends on the numbers", "unsupported",
                      help="bins=10, or the edges")
    if not isinstance(bins, int | np.integer):
        edges = tensor(bins)
        if edges.ndim != 1 or edges.size < 2:
            raise problem(f"histogram has a vector of two edges or more, not {edges.type}", "shape")
        if not isinstance(bins, Tensor) and (np.diff(np.asarray(bins)) < 0).any():
            raise problem("the edges of histogram increase", "argument", help="numpy.sort them first")
        return edges
    if bins < 1:
        raise problem(f"histogram has one bin or more, not {bins}", "argument")
    x = tensor(a)
    element = F64 if x.element == F64 else F32
    if range is not None:
        first, last = range
        if not (is_number(first) and is_number(last)) or not first <= last:
            raise problem(f"the range of histogram is two Python numbers, the lesser first, not {range!r}", "argument")
        first, last = (first - 0.5, last + 0.5) if first == last else (first, last)
        return linspace(first, last, int(bins) + 1, dtype=element)
    least, most = (converted(v, element) for v in ((min(x), max(x)) if x.size else (full((), 0.0), full((), 1.0))))
    is_one = equal(least, most)
    least, most = where(is_one, subtract(least, 0.5), least), where(is_one, add(most, 0.5), most)
    steps = multiply(arange(int(bins), dtype=element), divide(subtract(most, least), float(bins)))
    return concatenate([add(steps, least), reshape(most, 1)])


# ---- several variables -------------------------------------------------------------------------------------------
def variables(x: Any, rowvar: bool) -> Tensor:
    """Return the variables as rows, in floats."""
    found = tensor(x)
    if found.ndim > 2:
        raise problem(f"cov takes a vector or a matrix, not {found.type}", "shape")
    found = atleast_2d(found) if rowvar or found.ndim < 2 else transpose(found)
    return converted(found, F64 if found.element == F64 else F32)


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
        aweights: Any = None) -> Tensor:
    """Covariances of variables: the mean products of their distances from their means. Variables are the rows of m and y, or
    with `rowvar` False their columns. `ddof` (1, or with `bias` 0) is subtracted from the number of observations, each of which
    may be counted several times (`fweights`) or by its importance (`aweights`)."""
    x = variables(m, rowvar)
    if y is not None:
        x = concatenate([x, variables(y, rowvar)], 0)
    taken = (0 if bias else 1) if ddof is None else ddof
    given = [converted(tensor(w), x.element) for w in (fweights, aweights) if w is not None]
    for w in given:
        if w.shape != (x.shape[1],):
            raise problem(f"cov of {x.shape[1]} observations has weights {w.type}", "shape")
    if not given:
        centred = subtract(x, mean(x, 1, True))
        count: Any = float(builtins.max(x.shape[1] - taken, 0))
        return squeeze(divide(matmul(centred, transpose(centred)), count))
    w = multiply(*given) if len(given) == 2 else given[0]
    total = sum(w)
    centred = subtract(x, divide(sum(multiply(x, w), 1, True), total))
    squares = total if aweights is None else divide(sum(multiply(w, given[-1])), total)
    count = subtract(total, multiply(squares if aweights is not None else 1.0, float(taken)))
    return squeeze(divide(matmul(multiply(centred, w), transpose(centred)), where(count > 0, count, 0)))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """Covariances divided by the standard deviations of both variables, from -1 to 1."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return divide(c, c)
    deviations = sqrt(diag(c))
    return clip(divide(divide(c, reshape(deviations, (-1, 1))), deviations), -1.0, 1.0)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Sums of products of two vectors at each offset: `convolve` with the second vector reversed."""
    x, y = factors("correlate", a, v)
    if x.ndim == y.ndim == 1 and x.size < y.size:
        return flip(convolve(y, flip(x), mode))
    return convolve(x, flip(y), mode)


__all__ = ["corrcoef", "correlate", "cov", "digitize", "histogram", "histogram_bin_edges"]
