"""Generators of convolutions, MATMUL, pools, RESIZE, reductions and ARGMAX."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, BlockScaled, ElementType

from .combinations import Types
from .draft import NAN_MODES, Dims, Draft
from .elementwise import Generator

CHANNELS = (1, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65)
PRODUCTS = 60_000
"""Multiplications of one contraction, at most: the loops are interpreted, too."""
LEVEL = 8192
"""The largest kernel and stride of level 8K."""


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of a convolution or pool: kernel, stride, dilation, padding, and extents that fit them exactly."""
    kernel: int
    stride: int
    dilation: int
    pads: tuple[int, int]
    places: int

    @property
    def extent(self) -> int:
        """Of the input."""
        return (self.places - 1) * self.stride + (self.kernel - 1) * self.dilation + 1 - sum(self.pads)


POINT = Window(1, 1, 1, (0, 0), 1)


def window(d: Draft, kernels: int = 5, dilated: bool = True, pool: bool = False) -> Window:
    """A small one; padding up to more than the input, but for pools."""
    while True:
        kernel = d.choice(1, 1, 2, 3, d.rng.randint(1, kernels))
        dilation = d.choice(1, 1, 2, d.rng.randint(1, 7)) if dilated else 1
        limit = kernel - 1 if pool else d.choice(0, 2, 3, 3 + kernel * dilation)
        before, after = (d.integer(0, limit) if d.chance(0.6) else 0 for _ in "ab")
        found = Window(kernel, d.choice(1, 1, 2, 3, d.rng.randint(1, 9)), dilation, (before, after),
                       d.choice(1, 1, 2, 3, 4, 5, 7, 8, 9))
        if found.extent >= 1:
            return found


def large_window(d: Draft, dilated: bool = True) -> Window:
    """One at a limit of level 8K: kernel, stride, or dilation times kernel is 8192."""
    places = d.choice(1, 2, 3)
    match d.choice("kernel", "stride", "dilation" if dilated else "stride"):
        case "kernel":
            return Window(LEVEL, d.choice(1, LEVEL), 1, (d.choice(0, LEVEL - 1), 0), places)
        case "stride":
            return Window(d.choice(1, 3), LEVEL, 1, (0, 0), places)
        case _:
            return Window(2, 1, LEVEL // 2, (d.choice(0, LEVEL // 2), 0), places)


def windows(d: Draft, count: int, **limits: Any) -> list[Window]:
    """Windows of a few places together; now and then a large one, and points along the other axes."""
    if d.chance(0.02):
        found = [POINT] * (count - 1) + [large_window(d, limits.get("dilated", True))]
        d.rng.shuffle(found)
        return found
    while True:
        found = [window(d, **limits) for _ in range(count)]
        if math.prod(w.places for w in found) <= 80 and math.prod(w.extent for w in found) <= 800:
            return found


def flat(numbers: Sequence[Sequence[int]]) -> Dims:
    return tuple(n for pair in numbers for n in pair)


def convolution(name: str, spatial: int) -> Generator:
    def generator(d: Draft, types: Types) -> Sequence[Value]:
        axes = windows(d, spatial, kernels=3 if spatial == 3 else 5)
        kernel, places = tuple(w.kernel for w in axes), tuple(w.places for w in axes)
        depthwise = name == "depthwise_conv2d"
        batch, channels, filters = d.choice(1, 1, 2), d.choice(*CHANNELS), d.choice(*CHANNELS)
        if depthwise:
            filters = d.choice(1, 1, 2, 3, 4)
        most = max(math.prod(kernel) * math.prod(places), math.prod(w.extent for w in axes))
        channels, filters = affordable(d, batch * most, channels, filters)
        channels = whole(d, channels, types[:2])
        dims = (*kernel, channels, filters) if depthwise else (filters, *kernel, channels)
        operands = contracted(d, types, (batch, *(w.extent for w in axes), channels), dims,
                              channels * filters if depthwise else filters)
        return [d.op(name, *operands, pad=flat([w.pads for w in axes]), stride=tuple(w.stride for w in axes),
                     dilation=tuple(w.dilation for w in axes), acc_type=types[3], local_bound=d.chance(0.5))]

    return generator


def affordable(d: Draft, other: int, *channels: int) -> tuple[int, ...]:
    """Numbers of channels that keep the products few enough."""
    return d.shrunk(channels, max(1, PRODUCTS // other))


def contracted(d: Draft, types: Types, image: Dims, weight: Dims, filters: int) -> list[Value]:
    """Input, weight, bias and zero points of a convolution."""
    bias = d.choice(1, filters, filters, filters)
    return [d.tensor(types[0], image), d.tensor(types[1], weight, constant=0.6),
            d.tensor(types[2], (bias,), small(types[2]), 0.6), d.zero_point(types[0]), d.zero_point(types[1])]


def small(element: ElementType) -> tuple[int, int] | None:
    """A span of integers that leaves the sum of products inside the type."""
    return (-(1 << 24), 1 << 24) if element.is_integer else None


def margin(d: Draft, kernel: int) -> int:
    """What is put beside the output, or less than the kernel taken off it."""
    return d.integer(1 - kernel, 4) if d.chance(0.5) else 0


def transpose_convolution(d: Draft, types: Types) -> Sequence[Value]:
    while True:
        if d.chance(0.02):
            extents, pads = [1, d.choice(1, 2, 3)], [(0, 0)] * 2
            kernel, stride = d.choice(([1, LEVEL], [1, 1]), ([1, 2], [1, LEVEL]), ([LEVEL, 1], [LEVEL, 1]))
            places = [(n - 1) * s + k for n, s, k in zip(extents, stride, kernel)]
            break
        kernel, stride = ([d.choice(1, 2, 3, d.rng.randint(1, 5)) for _ in "hw"] for _ in "ks")
        extents = [d.choice(1, 2, 3, 5, 8) for _ in "hw"]
        pads = [(margin(d, k), margin(d, k)) for k in kernel]
        places = [(n - 1) * s + sum(p) + k for n, s, p, k in zip(extents, stride, pads, kernel)]
        if min(places) >= 1 and math.prod(places) <= 400:
            break
    batch = d.choice(1, 1, 2)
    channels, filters = affordable(d, batch * max(math.prod(extents) * math.prod(kernel), math.prod(places)),
                                   d.choice(*CHANNELS), d.choice(*CHANNELS))
    channels = whole(d, channels, types[:2])
    operands = contracted(d, types, (batch, *extents, channels), (filters, *kernel, channels), filters)
    return [d.op("transpose_conv2d", *operands, out_pad=flat(pads), stride=tuple(stride), acc_type=types[3],
                 local_bound=d.chance(0.5))]


def whole(d: Draft, channels: int, types: Types) -> int:
    """As many channels, or one or two whole blocks where one of the types is block-scaled; their values times scales are
    float32 then, as sums of their products are computed."""
    if not any(isinstance(t, BlockScaled) for t in types):
        return channels
    d.mood = "nasty" if d.mood == "bits" else d.mood
    return 32 * (1 + channels % 2)


def matmul(d: Draft, types: Types) -> Sequence[Value]:
    batch, rows, inner, columns = affordable(d, 1, d.choice(1, 2, 3), *(d.choice(*CHANNELS) for _ in range(3)))
    return multiplied(d, "matmul", types, (batch, rows, inner), (batch, inner, columns))


def matmul_t(d: Draft, types: Types) -> Sequence[Value]:
    """The second factor may have one batch for all."""
    batch, rows, inner, columns = affordable(d, 1, d.choice(1, 2, 3), *(d.choice(*CHANNELS) for _ in range(3)))
    inner = whole(d, inner, types[:2])
    return multiplied(d, "matmul_t", types, (batch, rows, inner), (d.choice(1, batch), columns, inner))


def multiplied(d: Draft, name: str, types: Types, a: Dims, b: Dims) -> Sequence[Value]:
    first = d.tensor(types[0], a)
    second = d.like(first, b) if types[0] == types[1] else d.tensor(types[1], b, constant=0.3)
    return [d.op(name, first, second, d.zero_point(types[0]), d.zero_point(types[1]), to=types[2])]


# ---- pools, resize -----------------------------------------------------------------------------------------------
def pool(name: str) -> Generator:
    def generator(d: Draft, types: Types) -> Sequence[Value]:
        axes = windows(d, 2, kernels=9, dilated=False, pool=True)
        most = max(1, d.most // math.prod(max(w.extent, w.places) for w in axes))
        batch, channels = d.shrunk((d.choice(1, 2, 3), d.choice(*CHANNELS)), most)
        x = d.tensor(types[0], (batch, *(w.extent for w in axes), channels))
        window: dict[str, Any] = {"kernel": tuple(w.kernel for w in axes), "stride": tuple(w.stride for w in axes),
                                  "pad": flat([w.pads for w in axes])}
        operands = [x] if name.startswith("max") else [x, d.zero_point(types[0]), d.zero_point(types[0])]
        if name.endswith("adaptive"):
            operands += [d.shape(*numbers) for numbers in window.values()]
            window = {}
        mode: dict[str, Any] = {"nan_mode": d.choice(*NAN_MODES)} if name.startswith("max") else {"acc_type": types[1]}
        return [d.op(name, *operands, **window, **mode)]

    return generator


def resize(d: Draft, types: Types) -> Sequence[Value]:
    mode = "BILINEAR" if types[0] != types[1] else "NEAREST_NEIGHBOR"
    if types[0] in (F16, BF16, F32, F8E4M3, F8E5M2) and types[0] == types[1]:
        mode = d.choice("BILINEAR", "NEAREST_NEIGHBOR")
    rows, columns = line(d), line(d)
    most = max(1, d.most // (max(rows[0], rows[-1]) * max(columns[0], columns[-1])))
    batch, channels = d.shrunk((d.choice(1, 2, 3), d.choice(*CHANNELS)), most)
    channels = whole(d, channels, types[:1])
    x = d.tensor(types[0], (batch, rows[0], columns[0], channels))
    scale, offset, border = ((*rows[1:3], *columns[1:3]), (rows[3], columns[3]), (rows[4], columns[4]))
    return [d.op("resize", x, d.shape(*scale), d.shape(*offset), d.shape(*border), mode=mode)]


def line(d: Draft) -> tuple[int, int, int, int, int, int]:
    """(extent, n, d, offset, border, places) of one axis, the scale n/d up to its limits."""
    while True:
        extent = d.choice(1, 1, 2, 3, 7, 8, 17)
        numerator = d.choice(1, 2, 3, 4, 6, 16, d.rng.randint(1, 40), d.rng.randint(1, 2048), 2048)
        if numerator > 256 and d.chance(0.7):  # reduced, the level allows 256
            numerator = 256
        denominator = d.choice(1, 2, 3, numerator, max(1, numerator // 2), d.rng.randint(1, 16 * numerator - 1),
                               16 * numerator - 1)
        if not 1 <= denominator < 16 * numerator or numerator // math.gcd(numerator, denominator) > 256:
            continue
        offset = d.choice(0, 0, -numerator, d.rng.randint(-numerator, numerator), d.integer(-numerator, 16 * numerator - 1))
        border = d.choice(0, 0, numerator - 1, d.integer(-16 * numerator, numerator - 1))
        length = (extent - 1) * numerator - offset + border
        border -= length % denominator
        places = (length - length % denominator) // denominator + 1
        if -16 * numerator <= border and 1 <= places <= 70:
            return extent, numerator, denominator, offset, border, places


# ---- Fourier transforms ------------------------------------------------------------------------------------------
def transformed(d: Draft) -> Dims:
    """A batch, and extents that are powers of two."""
    while True:
        dims = (d.choice(1, 1, 2, 3), *(1 << d.choice(0, 1, 2, 3, 4, 5, 6, 8) for _ in "hw"))
        if math.prod(dims) <= d.most:
            return dims


def fft2d(d: Draft, types: Types) -> Sequence[Value]:
    real = d.tensor(types[0], transformed(d))
    return d.ops("fft2d", real, d.like(real, real.tensor.dims), inverse=d.chance(0.5), local_bound=d.chance(0.5))


def rfft2d(d: Draft, types: Types) -> Sequence[Value]:
    return d.ops("rfft2d", d.tensor(types[0], transformed(d)), local_bound=d.chance(0.5))


# ---- reductions --------------------------------------------------------------------------------------------------
def reduction(name: str, has_nan_mode: bool = False) -> Generator:
    def generator(d: Draft, types: Types) -> Sequence[Value]:
        dims = d.dims(1)
        attributes: dict[str, Any] = {"axis": d.rng.randrange(len(dims))}
        if has_nan_mode:
            attributes["nan_mode"] = d.choice(*NAN_MODES)
        if name == "argmax":
            attributes["to"] = types[1]
        return [d.op(name, d.tensor(types[0], dims), **attributes)]

    return generator


GENERATORS: dict[str, Generator] = {
    "conv2d": convolution("conv2d", 2), "conv3d": convolution("conv3d", 3),
    "depthwise_conv2d": convolution("depthwise_conv2d", 2), "transpose_conv2d": transpose_convolution, "matmul": matmul,
    "matmul_t": matmul_t, "resize": resize, "fft2d": fft2d, "rfft2d": rfft2d,
    **{name: pool(name) for name in ("avg_pool2d", "max_pool2d", "avg_pool2d_adaptive", "max_pool2d_adaptive")},
    **{name: reduction(name) for name in ("reduce_all", "reduce_any", "reduce_product", "reduce_sum")},
    **{name: reduction(name, True) for name in ("reduce_max", "reduce_min", "argmax")}}
