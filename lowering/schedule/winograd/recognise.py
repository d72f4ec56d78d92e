"""The pattern of a convolution that minimal filters can compute: 3 x 3 constant weights, stride and dilation 1, sums of float32
over channels, with any prologue and epilogue."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Axis, Range
from ...elements.traverse import computed, loads
from ...graph.types import Array
from ..contraction.pattern import Contraction
from ..contraction.recognise import recognise as contraction_of
from ..nest.constant_data import constant, is_constant
from ..nest.loop_nest import Nest
from .minimal_filter import TAPS


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """The contraction with its axes by role: outputs along `height` and `width` are sums over the taps `rows` and `columns` of
    a window, and over `channels`."""
    contraction: Contraction
    height: Axis
    width: Axis
    rows: Axis
    columns: Axis
    channels: Axis

    @property
    def nest(self) -> Nest:
        return self.contraction.nest

    @property
    def batch(self) -> tuple[Axis, ...]:
        """Other axes of the outputs."""
        return tuple(a for a in self.contraction.outer if a is not self.height and a is not self.width)

    def conditions(self, tap: Axis) -> tuple[Range, ...]:
        """Return the conditions that the input has the row, or the column, of a tap."""
        return tuple(w for w in self.contraction.reduce.where if w.index.coefficient(tap))

    def weights(self) -> Array:
        """Return the weights as [channels, outputs, 3, 3]."""
        data = constant(self.contraction.b, (self.channels, self.contraction.n, self.rows, self.columns))
        return np.asarray(data, np.float32)


def recognise(nest: Nest) -> Convolution | None:
    """Return the convolution that a nest computes, or None."""
    pattern = contraction_of(nest, False) if nest.axes else None
    if pattern is None or pattern.reduce.dtype != "float32" or pattern.a.dtype != "float32" or nest.where:
        return None
    taps, channels = [a for a in pattern.reduce.axes if a.extent == TAPS], [a for a in pattern.reduce.axes if a.extent != TAPS]
    if len(taps) == 3:  # there are three channels, too: they are the last axis
        *taps, last = taps
        channels = [last]
    if len(taps) != 2 or len(channels) != 1 or not is_constant(pattern.b) or pattern.batch:
        return None
    places = [a for a in (pattern.m, *pattern.outer) if a is not None]
    moved = [along(pattern, tap, places) for tap in taps]
    if None in moved or moved[0] is moved[1]:
        return None
    (height, width), (rows, columns) = (a for a in moved if a is not None), taps
    if not all(keeps(w, height, rows) or keeps(w, width, columns) for w in pattern.reduce.where):
        return None
    return Convolution(pattern, height, width, rows, columns, channels[0]) if are_finite(pattern) else None


def along(pattern: Contraction, tap: Axis, places: Sequence[Axis]) -> Axis | None:
    """Return the output axis along which a window moves by one tap, or None."""
    reads = loads(pattern.a)
    if not reads or any(computed(x.index) or x.index[0].hidden for x in reads):
        return None
    indices = [x.index[0] for x in reads] + [w.index for w in pattern.reduce.where]
    return next((p for p in places if all(i.coefficient(p) == i.coefficient(tap) for i in indices)
                 and any(i.coefficient(tap) for i in indices)), None)


def keeps(w: Range, place: Axis, tap: Axis) -> bool:
    """True if a condition keeps the window in range along one axis."""
    return w.index.axes == {place, tap} and not w.index.hidden and w.index.coefficient(place) == w.index.coefficient(tap) == 1


def are_finite(pattern: Contraction) -> bool:
    """True if all weights are finite, so that the zeros of a border add nothing."""
    return all(bool(np.isfinite(np.asarray(x.buffer.data, np.float32)).all()) for x in loads(pattern.b))
