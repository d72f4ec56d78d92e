"""Pools: MaxPool with the indices of its elements, AveragePool, LpPool, those over a whole image, MaxUnpool."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.division import divided
from ...formulas.powers import real_power
from ...formulas.reductions import operator as one_operator
from ...formulas.reductions import reduced
from ...formulas.term import Term, absolute
from ...formulas.updates import updated_rows
from ...formulas.windows import window_padded
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I32, I64, Array
from ..emitter import Emitter, integers
from ..pools import least, max_pool, mean_pool, sum_pool
from .operator import Ints, Operator, operator
from .windows import Windowed, channels_first, channels_last, spatial_axes


@operator("MaxPool")
class MaxPool(Windowed):
    """MaxPool. The second result is the index in the input of each greatest number, counted over all axes; with `storage_order`
    1 the spatial axes are counted from the last to the first."""
    storage_order: int = 0

    def reference(self, x: Array) -> tuple[Array, Array]:
        kernel = self.kernel(spatial_axes(x.shape))
        low = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        seen = self.seen(x, kernel, np.asarray(low, x.dtype))
        places = self.seen(self.numbered(x.shape), kernel, np.int64(-1))
        flat = seen.reshape(*seen.shape[:-len(kernel)], -1)
        where = np.where(places.reshape(flat.shape) >= 0, flat, np.asarray(low, x.dtype)).argmax(-1)[..., None]
        chosen = np.take_along_axis(flat, where, -1)[..., 0]
        return chosen.astype(x.dtype), np.take_along_axis(places.reshape(flat.shape), where, -1)[..., 0]

    def numbered(self, shape: Sequence[int]) -> Array:
        """Return the index of each element."""
        n, channels, *extents = shape
        inner = np.arange(math.prod(extents), dtype=np.int64)
        inner = inner.reshape(extents[::-1]).T if self.storage_order else inner.reshape(extents)
        base = np.arange(n * channels, dtype=np.int64).reshape(n, channels, *(1,) * len(extents)) * math.prod(extents)
        return base + inner

    def lower(self, e: Emitter, x: Value) -> tuple[Value, ...]:
        spatial = spatial_axes(x.tensor.dims)
        kernel = self.kernel(spatial)
        window, _ = self.window(x.tensor.dims[2:], kernel)
        if self.results == 1:
            return (channels_first(e, max_pool(e, channels_last(e, x), window.of_plane()), spatial),)
        own, element = x.tensor.element, working_type(x.tensor.element, True, True)
        image = channels_last(e, e.cast(x, element))
        plane = window.of_plane()
        numbers = np.arange(math.prod(x.tensor.dims[2:]), dtype=np.int32)
        extents = x.tensor.dims[2:]
        inside = numbers.reshape(extents[::-1]).T if self.storage_order else numbers.reshape(extents)
        flat = inside.reshape(1, *((1, *extents) if spatial == 1 else extents), 1)
        padded_numbers = np.pad(flat, [(0, 0), *plane.pads, (0, 0)], constant_values=-1)
        taps = plane.taps(e, window_padded(e, image, plane.pads, least(element)))
        best = place = None
        for at, seen in taps:
            cut = tuple(slice(p * d, p * d + (count - 1) * s + 1, s) for p, d, s, count in
                        zip(at, plane.dilations, plane.strides, seen.tensor.dims[1:-1]))
            own_place = Term(e, e.constant(np.ascontiguousarray(padded_numbers[(slice(None), *cut)])))
            value = Term(e, seen)
            if best is None or place is None:
                best, place = value, own_place
                continue
            takes = (value > best) | ((place < 0) & (own_place >= 0))
            best, place = value.of(e.select(takes.value, value.value, best.value)), place.of(
                e.select(takes.value, own_place.value, place.value))
        assert best is not None and place is not None
        whole = e.broadcast_to(place.value, best.value.tensor.dims)
        n, channels = x.tensor.dims[:2]
        places = channels_first(e, whole, spatial)
        base = (np.arange(n * channels, dtype=np.int32) * math.prod(extents)).reshape(n, channels, *(1,) * spatial)
        return (e.cast(channels_first(e, best.value, spatial), own), e.cast(e.sum(places, e.constant(base)), I64))


@operator("AveragePool")
class AveragePool(Windowed):
    """The mean of the elements that are not padding, or with `count_include_pad` of padding, too; never of elements beyond
    it."""
    count_include_pad: int = 0

    def reference(self, x: Array) -> Array:
        kernel = self.kernel(spatial_axes(x.shape))
        inner = tuple(range(-len(kernel), 0))
        total = self.seen(x.astype(np.float64), kernel, 0.0).sum(inner)
        ones = self.seen(np.ones((1, 1, *x.shape[2:])), kernel, float(self.count_include_pad), 0.0)
        return np.asarray(total / ones.sum(inner), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        own, spatial = x.tensor.element, spatial_axes(x.tensor.dims)
        kernel = self.kernel(spatial)
        window, pads = self.window(x.tensor.dims[2:], kernel)
        image = channels_last(e, e.cast(x, working_type(own, False, True)))
        if not self.count_include_pad or not any(map(sum, window.pads)):
            found = mean_pool(e, image, window.of_plane())
        else:
            sums = sum_pool(e, image, window.of_plane())
            counts = self.counts(x.tensor.dims[2:], kernel, pads)
            counts = counts[:, None] if spatial == 1 else counts
            found = divided(Term(e, sums), Term(e, e.constant(counts.astype(image.tensor.element.dtype)))).value
        return e.cast(channels_first(e, found, spatial), own)

    def counts(self, extents: Sequence[int], kernel: Ints, pads: Sequence[tuple[int, int]]) -> Array:
        """Return the number of elements of the input and its padding in each window, [1, places ..., 1]."""
        strides, _, places = self.placing(extents, kernel)
        found = np.ones((1,), np.int64)
        for n, k, s, d, (before, after), count in zip(extents, kernel, strides, self.numbers("dilations", len(kernel), 1), pads,
                                                      places):
            at = np.arange(count)[:, None] * s + np.arange(k) * d - before
            found = found[..., None] * (at < n + after).sum(1)
        return found[..., None]


def norm(e: Emitter, x: Term, p: int, axes: Sequence[int]) -> Term:
    """Return the p-th root of the sum of p-th powers along axes, which stay with extent 1."""
    powers = powered(absolute(x), p)
    return rooted(Term(e, reduced(e, powers.value, axes, one_operator("reduce_sum"), 0)), p)


def powered(x: Term, p: float) -> Term:
    return x if p == 1 else x * x if p == 2 else x.of(real_power(x.builder, x.value, x.builder.splat(p, x.value)))


def rooted(x: Term, p: float) -> Term:
    return x if p == 1 else x.of(real_power(x.builder, x.value, x.builder.splat(1 / p, x.value)))


@operator("LpPool")
class LpPool(Windowed):
    p: int = 2

    def reference(self, x: Array) -> Array:
        kernel = self.kernel(spatial_axes(x.shape))
        powers = self.seen(np.abs(x.astype(np.float64)), kernel, 0.0) ** self.p
        return np.asarray(powers.sum(tuple(range(-len(kernel), 0))) ** (1 / self.p), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        own, spatial = x.tensor.element, spatial_axes(x.tensor.dims)
        window, _ = self.window(x.tensor.dims[2:], self.kernel(spatial))
        powers = powered(absolute(Term(e, channels_last(e, e.cast(x, working_type(own, False, True))))), self.p)
        found = rooted(Term(e, sum_pool(e, powers.value, window.of_plane())), self.p)
        return e.cast(channels_first(e, found.value, spatial), own)


# ---- over the whole image ------------------------------------------------------------------------------------------------
class Global(Operator):
    """A pool over all spatial axes, which stay with extent 1."""

    def axes(self, rank: int) -> tuple[int, ...]:
        require(rank > 2, "it takes batch, channels and spatial axes", kind="shape")
        return tuple(range(2, rank))


@operator("GlobalAveragePool")
class GlobalAveragePool(Global):
    def reference(self, x: Array) -> Array:
        return np.asarray(x.astype(np.float64).mean(self.axes(x.ndim), keepdims=True), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        wide = e.cast(x, working_type(x.tensor.element, False, True))
        total = reduced(e, wide, self.axes(x.tensor.rank), one_operator("reduce_sum"), math.nan)
        count = math.prod(x.tensor.dims[2:])
        return e.cast(divided(Term(e, total), Term(e, e.splat(count, total))).value, x.tensor.element)


@operator("GlobalMaxPool")
class GlobalMaxPool(Global):
    def reference(self, x: Array) -> Array:
        return np.asarray(x.max(self.axes(x.ndim), keepdims=True))

    def lower(self, e: Emitter, x: Value) -> Value:
        return reduced(e, x, self.axes(x.tensor.rank), one_operator("reduce_max"), least(x.tensor.element))


@operator("GlobalLpPool")
class GlobalLpPool(Global):
    p: int = 2

    def reference(self, x: Array) -> Array:
        powers = np.abs(x.astype(np.float64)) ** self.p
        return np.asarray(powers.sum(self.axes(x.ndim), keepdims=True) ** (1 / self.p), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        wide = Term(e, e.cast(x, working_type(x.tensor.element, False, True)))
        return e.cast(norm(e, wide, self.p, self.axes(x.tensor.rank)).value, x.tensor.element)


@operator("MaxUnpool")
class MaxUnpool(Windowed):
    """The numbers of a MaxPool at their original indices, zeros elsewhere."""

    def shape(self, dims: Sequence[int], given: Sequence[int] | None) -> tuple[int, ...]:
        if given is not None:
            return tuple(given)
        count = len(dims) - 2
        kernel, strides, pads = self.kernel(count), self.numbers("strides", count, 1), self.numbers("pads", 2 * count, 0)
        return (*dims[:2], *((n - 1) * s - pads[a] - pads[a + count] + k for a, (n, s, k) in
                             enumerate(zip(dims[2:], strides, kernel))))

    def reference(self, x: Array, places: Array, shape: Array | None = None) -> Array:
        own = self.shape(x.shape, None)
        whole = own if shape is None else tuple(int(n) for n in shape)
        found = np.zeros(whole, x.dtype)
        for index, place in zip(np.ndindex(*x.shape), places.reshape(-1)):
            found[np.unravel_index(int(place), own)] = x[index]
        return found

    def lower(self, e: Emitter, x: Value, places: Value, shape: Value | None = None) -> Value:
        own = self.shape(x.tensor.dims, None)
        whole = own if shape is None else integers(shape, "the shape")
        numbers = e.cast(places, I32)
        if whole != own:
            raise_unless_fits(own, whole)
            numbers = moved_places(e, numbers, own, whole)
        zeros = e.broadcast_to(e.constant(np.zeros((), x.tensor.element.dtype), x.tensor.element), (math.prod(whole),))
        rows = updated_rows(e, zeros, e.reshape(numbers, (x.tensor.size, 1)), e.reshape(x, (x.tensor.size,)))
        return e.reshape(rows.written(), whole)


def raise_unless_fits(own: Sequence[int], whole: Sequence[int]) -> None:
    if len(own) != len(whole) or any(n > m for n, m in zip(own, whole)):
        raise Problem(f"{list(own)} does not fit into {list(whole)}", kind="shape")


def moved_places(e: Emitter, numbers: Value, own: Sequence[int], whole: Sequence[int]) -> Value:
    """Return indices of elements of one shape as indices in a larger one."""
    rest, total = Term(e, numbers), None
    for axis in range(len(own)):
        inner, outer = math.prod(own[axis + 1:]), math.prod(whole[axis + 1:])
        index = rest.apply("intdiv", inner) if inner > 1 else rest
        rest = rest - index * inner
        total = index * outer if total is None else total + index * outer
    assert total is not None
    return total.value


