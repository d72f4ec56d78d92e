"""Concatenation and splitting of tensors along an axis, and borders: Concat, Split, Slice, Pad, CenterCropPad."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem
from ....runtime.limits import check_tensor
from ....runtime.records import dataclass
from ...formulas.indexing import gathered
from ...formulas.layout import every, padded, part, reversed_axis, taken
from ...formulas.term import Term
from ...graph.graph import Value
from ...graph.types import I64, Array
from ..emitter import Emitter, axes_of, integers
from .along_axis import axis_of
from .arithmetic import same_elements
from .offsets import origins
from .operator import Ints, Operator, operator


@operator("Concat")
class Concat(Operator):
    axis: int = 1

    def reference(self, *arrays: Array) -> Array:
        return np.concatenate(arrays, self.axis)

    def lower(self, e: Emitter, *parts: Value) -> Value:
        same_elements(*parts)
        return e.concat(parts, axis_of(self.axis, parts[0].tensor.rank))


@operator("Split")
class Split(Operator):
    """Split. The sizes were an attribute before version 13; without sizes, the parts are equal, the last one possibly
    smaller."""
    axis: int = 0
    split: Ints | None = None
    num_outputs: int | None = None

    def sizes(self, extent: int, given: Sequence[int] | None) -> list[int]:
        sizes = self.split if given is None else given
        if sizes is None:
            count = self.num_outputs or self.results
            each = -(-extent // count)
            sizes = [min(each, max(extent - k * each, 0)) for k in range(count)]
        if sum(sizes) != extent or min(sizes, default=0) < 0:
            raise ValueError(f"{list(sizes)} are no parts of {extent}")
        return list(sizes)

    def reference(self, x: Array, split: Array | None = None) -> tuple[Array, ...]:
        axis = axis_of(self.axis, x.ndim)
        sizes = self.sizes(x.shape[axis], None if split is None else [int(n) for n in split])
        return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))

    def lower(self, e: Emitter, x: Value, split: Value | None = None) -> tuple[Value, ...]:
        axis = axis_of(self.axis, x.tensor.rank)
        sizes = self.sizes(x.tensor.dims[axis], None if split is None else integers(split, "the sizes"))
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        return tuple(part(e, x, axis, start, start + size) for start, size in zip(starts, sizes))


# ---- slices --------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Steps:
    """Indices along an axis: `count` of them from `start`, `step` apart."""
    start: int
    count: int
    step: int


@operator("Slice")
class Slice(Operator):
    """Starts, ends and axes were attributes before version 10, without steps."""
    starts: Ints = ()
    ends: Ints = ()
    axes: Ints | None = None

    def given(self, rank: int, operands: Sequence[Sequence[int] | None]) -> list[tuple[int, slice]]:
        """Return each sliced axis with its slice."""
        starts, ends, axes, steps = operands
        starts, ends = self.starts if starts is None else starts, self.ends if ends is None else ends
        axes = self.axes if axes is None else axes
        axes = range(len(starts)) if axes is None else axes
        steps = [1] * len(starts) if steps is None else steps
        if not len(starts) == len(ends) == len(axes) == len(steps):
            raise ValueError(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
        return [(axis_of(a, rank), python_slice(b, c, s)) for a, b, c, s in zip(axes, starts, ends, steps)]

    def reference(self, x: Array, starts: Array | None = None, ends: Array | None = None, axes: Array | None = None,
                  steps: Array | None = None) -> Array:
        lists = [None if a is None else [int(n) for n in a] for a in (starts, ends, axes, steps)]
        index = [slice(None)] * x.ndim
        for axis, chosen in self.given(x.ndim, lists):
            index[axis] = chosen
        return x[tuple(index)]

    def lower(self, e: Emitter, x: Value, starts: Value | None = None, ends: Value | None = None, axes: Value | None = None,
              steps: Value | None = None) -> Value:
        if starts is not None and ends is not None and (starts.constant is None or ends.constant is None):
            return self.moving(e, x, starts, ends, axes, steps)
        values = (starts, ends, axes, steps)
        lists = [None if v is None else integers(v, what) for v, what in
                 zip(values, ("the starts", "the ends", "the axes", "the steps"))]
        for axis, chosen in self.given(x.tensor.rank, lists):
            x = sliced(e, x, axis, steps_of(chosen, x.tensor.dims[axis]))
        return x

    def moving(self, e: Emitter, x: Value, starts: Value, ends: Value, axes: Value | None, steps: Value | None) -> Value:
        """Return slices of known lengths whose starts are unknown."""
        first, last, rank = origins(e, starts), origins(e, ends), x.tensor.rank
        chosen = range(len(first)) if axes is None else axes_of(axes, rank)
        strides = [1] * len(first) if steps is None else integers(steps, "the steps")
        flat = e.reshape(e.cast(starts, I64), (len(first),))
        for k, (axis, begin, end, step) in enumerate(zip(chosen, first, last, strides, strict=True)):
            if begin.known is not None and end.known is not None:
                x = sliced(e, x, axis, steps_of(python_slice(begin.known, end.known, step), x.tensor.dims[axis]))
            else:
                if (size := end - begin) is None or step != 1:
                    raise Problem("how many elements a slice has must be known when compiling", kind="unsupported",
                                  help="make starts and ends constants, or ends starts plus constants")
                x = from_anywhere(e, x, axis, part(e, flat, 0, k, k + 1), size)
        return x


def from_anywhere(e: Emitter, x: Value, axis: int, start: Value, size: int) -> Value:
    """Return `size` elements of an axis from an unknown start; all of them must be in range."""
    extent = x.tensor.dims[axis]
    if not 0 < size <= extent:
        raise Problem(f"a slice of {size} elements is none of axis {axis} of {x.type}", kind="shape")
    first = Term(e, start)
    inside = ((first >= 0) & (first <= extent - size)).value
    e.check(e.reshape(inside, ()), f"a slice of {size} elements begins outside of axis {axis}, which has {extent}")
    return gathered(e, x, (first + Term(e, e.constant(np.arange(size)))).value, axis)


def python_slice(start: int, end: int, step: int) -> slice:
    """Return a Python slice; an end before the first index, which -1 cannot express there, is None."""
    if step == 0:
        raise ValueError("a step is 0")
    return slice(start, end, step)


def steps_of(chosen: slice, extent: int) -> Steps:
    """Return the indices of an axis that a slice selects. A negative number counts from the end in ONNX, once."""
    places = range(*chosen.indices(extent))
    return Steps(places[0] if places else 0, len(places), places.step)


def sliced(e: Emitter, x: Value, axis: int, s: Steps) -> Value:
    """Return the elements of an axis at these indices."""
    if not s.count:
        return part(e, x, axis, 0, 0)
    low = s.start if s.step > 0 else s.start + (s.count - 1) * s.step
    if s.count == 1 or abs(s.step) == 1:
        found = part(e, x, axis, low, low + s.count)
    else:
        found = every(e, x, axis, low, s.count, abs(s.step))
    return reversed_axis(e, found, axis) if s.step < 0 else found


# ---- borders -------------------------------------------------------------------------------------------------------------
MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@operator("Pad")
class Pad(Operator):
    """Pad. `pads` and the value were attributes before version 11; a negative pad crops."""
    mode: str = "constant"
    pads: Ints | None = None
    paddings: Ints | None = None
    value: float = 0.0

    def borders(self, rank: int, given: Sequence[int] | None, axes: Sequence[int] | None) -> list[tuple[int, int]]:
        numbers = (self.pads or self.paddings or ()) if given is None else given
        chosen = range(rank) if axes is None else [axis_of(a, rank) for a in axes]
        if len(numbers) != 2 * len(chosen):
            raise ValueError(f"{list(numbers)} is no border of {len(chosen)} axes")
        found = [(0, 0)] * rank
        for k, axis in enumerate(chosen):
            found[axis] = int(numbers[k]), int(numbers[k + len(chosen)])
        return found

    def reference(self, x: Array, pads: Array | None = None, value: Array | None = None, axes: Array | None = None) -> Array:
        lists = [None if a is None else [int(n) for n in a] for a in (pads, axes)]
        borders = self.borders(x.ndim, *lists)
        index = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, borders))
        widths = [(max(a, 0), max(b, 0)) for a, b in borders]
        if self.mode == "constant":
            number = np.asarray(self.value if value is None or not np.size(value) else np.reshape(value, ()), x.dtype)
            check_tensor(math.prod(n + sum(w) for n, w in zip(x[index].shape, widths)) * x.itemsize)
            return np.pad(x[index], widths, "constant", constant_values=number)
        return np.asarray(np.pad(x[index], widths, self.mode))  # type: ignore[call-overload]

    def lower(self, e: Emitter, x: Value, pads: Value | None = None, value: Value | None = None,
              axes: Value | None = None) -> Value:
        given = None if pads is None else integers(pads, "the borders")
        borders = self.borders(x.tensor.rank, given, None if axes is None else axes_of(axes, x.tensor.rank))
        for axis, (a, b) in enumerate(borders):
            if a < 0 or b < 0:
                x = part(e, x, axis, max(-a, 0), x.tensor.dims[axis] - max(-b, 0))
        widths = [(max(a, 0), max(b, 0)) for a, b in borders]
        if self.mode == "constant":
            return self.constant(e, x, widths, value)
        if self.mode not in MODES:
            raise Problem(f"the mode {self.mode} is not known", kind="attribute", help=", ".join(MODES))
        for axis, (a, b) in enumerate(widths):
            if a or b:
                places = np.pad(np.arange(x.tensor.dims[axis]), (a, b), self.mode)  # type: ignore[call-overload]
                x = taken(e, x, axis, places)
        return x

    def constant(self, e: Emitter, x: Value, widths: list[tuple[int, int]], value: Value | None) -> Value:
        own = x.tensor.element
        number = e.constant(np.asarray(self.value, own.dtype), own) if value is None or not value.tensor.size else \
            e.reshape(value, ())
        return padded(e, x, widths, number)


@operator("CenterCropPad")
class CenterCropPad(Operator):
    """The middle of each axis, or the axis between zeros; an odd element is cut off, or added, at the end."""
    axes: Ints | None = None

    def wanted(self, dims: Sequence[int], shape: Sequence[int]) -> list[int]:
        axes = range(len(dims)) if self.axes is None else [axis_of(a, len(dims)) for a in self.axes]
        if len(shape) != len(axes):
            raise ValueError(f"{list(shape)} does not say the extents of {len(axes)} axes")
        found = list(dims)
        for axis, extent in zip(axes, shape):
            found[axis] = int(extent)
        return found

    def reference(self, x: Array, shape: Array) -> Array:
        wanted = self.wanted(x.shape, [int(n) for n in shape])
        found = np.zeros(wanted, x.dtype)
        source, target = [], []
        for n, m in zip(x.shape, wanted):
            gap = abs(n - m) // 2
            source.append(slice(gap, gap + m) if n > m else slice(None))
            target.append(slice(gap, gap + n) if m > n else slice(None))
        found[tuple(target)] = x[tuple(source)]
        return found

    def lower(self, e: Emitter, x: Value, shape: Value) -> Value:
        wanted = self.wanted(x.tensor.dims, integers(shape, "the shape"))
        for axis, m in enumerate(wanted):
            n = x.tensor.dims[axis]
            if n > m:
                x = part(e, x, axis, (n - m) // 2, (n - m) // 2 + m)
        widths = [((m - n) // 2, m - n - (m - n) // 2) for n, m in zip(x.tensor.dims, wanted)]
        return padded(e, x, widths)
