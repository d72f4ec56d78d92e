"""The evaluator of expressions in NumPy, over the whole iteration space at once. It checks all lower levels, and evaluates
expressions of constants while compiling (packed weights, folded casts).
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..graph.types import NUMPY_NAMES, Array
from .affine import Affine, Axis, Computed, Range, Wrapped
from .expression import PRIMITIVES, Apply, Buffer, Cast, Const, Expr, Guard, IndexValue, Load, Reduce
from .traverse import children, post_order

Grid = Mapping[Axis, Array]
NOTHING: Mapping[Buffer, Array] = {}
COMBINE = {"add": np.add, "mul": np.multiply, "or": np.bitwise_or, "and": np.bitwise_and, "min": np.minimum,
           "max": np.maximum, "minimum": np.minimum, "maximum": np.maximum, "minnum": np.fmin, "maxnum": np.fmax}


def numpy_dtype(name: str) -> np.dtype:
    if name not in NUMPY_NAMES:
        import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
    return np.dtype(name)


def converted(x: Array, dtype: str) -> Array:
    """Return x as another dtype. ml_dtypes converts by way of float32: a float64 is first cut to that, its last bit set for any
    loss."""
    if x.dtype == np.float64 and dtype not in NUMPY_NAMES:
        near = x.astype(np.float32)
        error = np.where(np.isfinite(near), near - x, np.where(np.isfinite(x), np.sign(near), 0))
        cut = np.where(error * np.sign(near) > 0, np.nextafter(near, np.float32(0)), near)
        odd = (cut.view(np.int32) | 1).view(np.float32)
        x = np.where(error == 0, near, odd)
    return np.asarray(x.astype(numpy_dtype(dtype)))


def evaluate(e: Expr, axes: tuple[Axis, ...], data: Mapping[Buffer, Array] = NOTHING) -> Array:
    """Return the array of e's values over `axes`, in that order."""
    grid = {a: np.arange(a.extent).reshape([-1 if b is a else 1 for b in axes]) for a in axes}
    with np.errstate(all="ignore"):
        result = Evaluator(grid, data, len(axes)).value(e)
    return np.broadcast_to(result, [a.extent for a in axes])


class Evaluator:
    """Values of expressions over a grid of index values."""

    def __init__(self, grid: Grid, data: Mapping[Buffer, Array], rank: int) -> None:
        self.grid, self.data, self.rank = grid, data, rank
        self.memo: dict[Expr, Array] = {}

    def value(self, e: Expr) -> Array:
        """Return the values of e, without recursion but for reductions, because chains may be long."""
        if e not in self.memo:
            for node in post_order((e,), self.needed):
                if node not in self.memo:
                    self.memo[node] = self.compute(node)
        return self.memo[e]

    def needed(self, e: Expr) -> tuple[Expr, ...]:
        """Return the nodes that a node is computed from on this grid: the terms of a reduction have a grid of their own."""
        return () if e in self.memo or isinstance(e, Reduce) else children(e)

    def compute(self, e: Expr) -> Array:
        match e:
            case Const(value, dtype):
                return np.asarray(value, numpy_dtype(dtype))
            case IndexValue(index, dtype):
                return self.index(index).astype(numpy_dtype(dtype))
            case Load():
                return self.load(e)
            case Apply(primitive, args, dtype):
                return np.asarray(PRIMITIVES[primitive](*map(self.value, args))).astype(numpy_dtype(dtype))
            case Cast(arg, dtype, bits):
                x = np.asarray(self.value(arg))
                return x.view(numpy_dtype(dtype)) if bits else converted(x, dtype)
            case Guard(where, inside, outside):
                return np.where(self.holds(where), self.value(inside), self.value(outside))
            case Reduce():
                return self.reduction(e)
        raise TypeError(e)

    def load(self, e: Load) -> Array:
        """Return loaded values. Indices are clipped: a guarded load is evaluated where its guard does not hold, too."""
        array = e.buffer.data if e.buffer.data is not None else self.data[e.buffer]
        array = array.reshape(-1) if e.is_flat else array.reshape(e.buffer.shape)
        return np.asarray(array[tuple(np.clip(self.index(i), 0, n - 1) for i, n in zip(e.index, array.shape))])

    def reduction(self, e: Reduce) -> Array:
        rank, extra = self.rank, len(e.axes)
        grid = {a: g.reshape(g.shape + (1,) * extra) for a, g in self.grid.items()}
        for d, a in enumerate(e.axes):
            grid[a] = np.arange(a.extent).reshape([-1 if rank + d == j else 1 for j in range(rank + extra)])
        inner = type(self)(grid, self.data, rank + extra)
        dtype = numpy_dtype(e.dtype)
        body = np.where(inner.holds(e.where), inner.value(e.body), np.asarray(e.identity, dtype))
        lead = (1,) * (rank + extra - body.ndim) + body.shape
        body = np.broadcast_to(body.reshape(lead), (*lead[:rank], *(a.extent for a in e.axes)))
        if e.primitive in ("minnum", "maxnum"):
            body = body * dtype.type(1)  # quiet: of a signalling NaN, C's fmax makes a NaN
        last = tuple(range(rank, rank + extra))
        return np.asarray(COMBINE[e.primitive].reduce(body, axis=last, dtype=dtype, initial=np.asarray(
            e.identity, dtype)))

    def index(self, i: Affine) -> Array:
        total = np.asarray(i.const, np.int64)
        for term, c in i.terms:
            match term:
                case Axis():
                    total = total + self.grid[term] * c
                case Wrapped(source, extent):
                    total = total + self.index(source) % extent * c
                case Computed(value, extent):
                    total = total + np.clip(self.value(value).astype(np.int64), 0, extent - 1) * c
        return total

    def holds(self, where: tuple[Range, ...]) -> Array:
        result = np.asarray(True)
        for r in where:
            i = self.index(r.index)
            result = result & (r.low <= i) & (i < r.high)
        return result
