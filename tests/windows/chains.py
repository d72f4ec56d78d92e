"""Windows one behind the other, with what networks have between them (rescaling, padding, parts, reversals): such kernels are
fused, and run by rows, in circular buffers. Numbers are so small and whole that every sum is exact, in whatever order it is
added.
"""
from __future__ import annotations

import math

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BF16, F16, F32, F64, I8, I16, I32, I48, ElementType

from ..table.combinations import Types
from ..table.draft import Dims, Draft
from .operators import convolved, pooled, spread
from .places import CHANNELS, Drawn, drawn, pooling, sliding, spreading

FAMILIES: dict[str, Types] = {
    "f32": (F32, F32, F32, F32), "f16": (F16, F16, F16, F32), "bf16": (BF16, BF16, BF16, F32), "f64": (F64, F64, F64, F64),
    "i8": (I8, I8, I32, I32), "i16": (I16, I8, I48, I48)}
"""Types of the convolutions of a chain."""
LINKS: dict[str, Drawn] = {"conv2d": sliding, "depthwise_conv2d": sliding, "transpose_conv2d": spreading, "max_pool2d": pooling,
                           "avg_pool2d": pooling}
WEIGHTS = {"conv2d": 4, "depthwise_conv2d": 2, "transpose_conv2d": 2, "max_pool2d": 1, "avg_pool2d": 1}
"""How often each is drawn."""
MOST = 2000
"""Elements of an image."""
LARGEST = 2
"""Of the whole numbers that floats are."""


class Whole(Draft):
    """A draft whose floats are whole numbers up to `LARGEST`."""

    def tensor(self, element: ElementType, dims: Dims, span: tuple[int, int] | None = None, constant: float = 0.15) -> Value:
        if not element.is_float:
            return super().tensor(element, dims, span, constant)
        numbers = np.random.default_rng(self.rng.getrandbits(64)).integers(-LARGEST, LARGEST, tuple(dims), endpoint=True)
        return self.given(numbers.astype(element.dtype), element, constant)


def chain(d: Draft, family: str) -> Value:
    """Two or three windows, each of the one before."""
    types = FAMILIES[family]
    first = drawn(d, 2, sliding)
    x = d.tensor(types[0], (d.choice(1, 1, 2), *(a.extent for a in first), d.choice(*CHANNELS[:-4])), constant=0.0)
    links = d.rng.choices(list(LINKS), list(WEIGHTS.values()), k=d.choice(2, 2, 3))
    for number, name in enumerate(links):
        last = number == len(links) - 1
        x = moved(d, x)
        x = linked(d, "max_pool2d" if name == "avg_pool2d" and types[0].is_float and not last else name, types, x, last)
    return x


def moved(d: Draft, x: Value) -> Value:
    """An image whose pixels are elsewhere, or more, or fewer, now and then."""
    dims = x.tensor.dims
    match d.choice("", "", "", "pad", "slice", "reverse", "concat"):
        case "pad":
            numbers = [d.choice(0, 0, 1, 2) if 0 < axis < 3 else 0 for axis in range(4) for _ in "ab"]
            return d.op("pad", x, d.shape(*numbers), d.given(np.zeros(1, x.tensor.element.dtype), x.tensor.element, 0.8))
        case "slice":
            starts = [d.integer(0, n - 1) for n in dims]
            return d.op("slice", x, d.shape(*starts), d.shape(*(d.integer(1, n - s) for n, s in zip(dims, starts))))
        case "reverse":
            return d.op("reverse", x, axis=d.rng.randrange(4))
        case "concat" if x.tensor.size <= MOST // 2:
            return d.op("concat", x, d.op("reverse", x, axis=2), axis=d.choice(1, 2, 3))
    return x


def linked(d: Draft, name: str, types: Types, x: Value, last: bool) -> Value:
    """One more window; its sums come back to the type and to the size of what it reads."""
    extents = x.tensor.dims[1:3]
    axes = drawn(d, 2, LINKS[name], extents, max(MOST // x.tensor.dims[0], math.prod(extents)))
    if name.endswith("pool2d"):
        return pooled(d, name, (types[0], types[3] if types[0].is_float else I32), x, axes)
    filters = d.choice(*CHANNELS[:-4])
    made = spread(d, types, x, axes, filters) if name == "transpose_conv2d" else convolved(d, name, types, x, axes, filters)
    return made if last and d.chance(0.5) else brought_back(d, types[0], made)


def brought_back(d: Draft, element: ElementType, x: Value) -> Value:
    """Sums in the type of an image again."""
    if element.is_float:
        return d.op("clamp", x, min_val=-float(LARGEST), max_val=float(LARGEST), nan_mode="PROPAGATE")
    wide = x.tensor.element != I48
    factor = d.integer(1 << 14, (1 << 15) - 1) << (16 * wide)
    multiplier = d.constant(np.array([factor], np.int32 if wide else np.int16))
    shift = d.constant(np.array([d.integer(20, 24) + 16 * wide], np.int8))
    zero = d.constant(np.zeros(1, np.int32 if wide else np.int64), x.tensor.element)
    return d.op("rescale", x, multiplier, shift, zero, d.zero_point(element), scale32=wide, rounding_mode="SINGLE_ROUND",
                per_channel=False, input_unsigned=False, output_unsigned=False, to=element)
