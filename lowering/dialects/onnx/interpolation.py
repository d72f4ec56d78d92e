"""Interpolation of images at fractional points, as TOSA: the pixels around a point are weighted and summed. GridSample and
DeformConv use it; ONNX's padding mode decides the pixels outside of an image."""
from __future__ import annotations

import itertools
from collections.abc import Sequence

from ....runtime.records import dataclass
from ...formulas.term import Term, floor, maximum, minimum, select
from ...graph.graph import Value
from ...graph.types import I32
from ..emitter import Emitter


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Pixels [N, W, C], W of them for `extents`. `bounds` are the two mirrors along each axis, for the mode "reflection"."""
    e: Emitter
    pixels: Value
    extents: Sequence[int]
    padding_mode: str = "zeros"
    bounds: Sequence[tuple[float, float]] = ()

    def weighed(self, at: Sequence[Term], is_cubic: bool = False) -> Term:
        """Return the weighted sum [N, P, C] of the pixels around each point, whose coordinates are [N, P] numbers per axis: 2
        pixels along an axis, or 4."""
        reach = 2 if is_cubic else 1
        lows, total = [floor(a) for a in at], None
        rests = [a - low for a, low in zip(at, lows)]
        for steps in itertools.product(range(1 - reach, reach + 1), repeat=len(at)):
            weight = None
            for rest, step in zip(rests, steps):
                own = cubic_weight(rest, step) if is_cubic else rest if step else 1 - rest
                weight = own if weight is None else weight * own
            assert weight is not None
            pixel = self.at([low + step if step else low for low, step in zip(lows, steps)])
            term = pixel * Term(self.e, self.e.reshape(self.e.cast(weight.value, pixel.element),
                                                       (*weight.value.tensor.dims, 1)))
            total = term if total is None else total + term
        assert total is not None
        return total

    def at(self, places: Sequence[Term]) -> Term:
        """Return the pixels [N, P, C] at integer points; outside of the image according to the mode."""
        e, outside, number = self.e, None, None
        for axis, (place, extent) in enumerate(zip(places, self.extents)):
            if self.padding_mode == "reflection":
                place = floor(mirrored_place(place, *self.bounds[axis]))
            beyond = (place < 0) | (place > extent - 1)
            outside = beyond if outside is None else outside | beyond
            held = minimum(maximum(place, 0), extent - 1).cast(I32)
            number = held if number is None else number * extent + held
        assert number is not None and outside is not None
        found = Term(e, e("gather", self.pixels, number.value))
        if self.padding_mode != "zeros":
            return found
        mask = Term(e, e.reshape(outside.value, (*outside.value.tensor.dims, 1)))
        return select(mask, found.term(0), found)


def mirrored_place(x: Term, low: float, high: float) -> Term:
    """Return a coordinate reflected into the range between two mirrors."""
    width = high - low
    if width <= 0:
        return x * 0 + low
    t = x - low
    t = t - floor(t * (1 / (2 * width))) * (2 * width)
    return select(t > width, 2 * width - t, t) + low


def cubic_weight(rest: Term, step: int) -> Term:
    """Return the weight of the input `step` away from the one below a point, which is `rest` above that one."""
    a = -0.75
    distance = rest - step if step <= 0 else step - rest
    if step in (0, 1):
        return (distance * (a + 2) - (a + 3)) * distance * distance + 1
    return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a
