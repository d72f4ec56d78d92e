"""Random models of one operator with activations of two bytes and weights of one, as TensorFlow's converter writes them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tosaic.lowering.flatbuffer.table_builder import Scalar

from .files import Graph, Operator, Tensor, file, ints

Array = np.ndarray
Options = Sequence[Scalar | str | None]
Made = tuple[bytes, list[Array]]
"""A file, and operands for its inputs."""
SAME, VALID = 0, 1
ACTIVATIONS = (0, 0, 1, 3)
"""Their numbers: none, RELU, RELU6."""


def real(value: float) -> Scalar:
    """A float32 among options."""
    return Scalar("I", int(np.float32(value).view(np.uint32)))


@dataclass(frozen=True)
class Activation(Tensor):
    """A tensor of two bytes with one scale."""
    scale: float = 1.0


class Draw:
    """Draws what a model is made of."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def choice(self, *values: int) -> int:
        return int(self.random.choice(values))

    def between(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def scale(self, low: float = 1e-5, high: float = 1e-3) -> float:
        return float(np.float32(np.exp(self.random.uniform(np.log(low), np.log(high)))))

    def shape(self, rank: int, most: int = 9) -> tuple[int, ...]:
        return tuple(self.between(1, most) for _ in range(rank))

    def operand(self, shape: tuple[int, ...]) -> Array:
        """Mostly over the whole range, sometimes small."""
        bound = self.choice(32767, 32767, 3000, 100)
        return self.random.integers(-bound, bound + 1, shape).astype(np.int16)

    def activation(self, name: str, shape: tuple[int, ...], scale: float | None = None) -> Activation:
        return Activation(name, shape, "i16", None, self.scale() if scale is None else scale)


def one(kind: str, tensors: Sequence[Tensor], result: Tensor, options: Options, draw: Draw) -> Made:
    """A model of this operator."""
    inputs = [t for t in tensors if t.array is None]
    graph = Graph(" ".join(t.name for t in inputs), result.name, [*tensors, result],
                  [Operator(kind, " ".join(t.name for t in tensors), result.name, options)])
    operands = [draw.operand(t.shape) for t in inputs]
    return file(graph), [np.abs(x.clip(-32767)).clip(1) for x in operands] if kind == "RSQRT" else operands


# ---- sums of products ------------------------------------------------------------------------------------------------
def weights(draw: Draw, shape: tuple[int, ...], channels: int, axis: int, x: Activation
            ) -> tuple[Tensor, Tensor, float]:
    """A filter with a scale for each channel (or one), its bias, and a scale for the result that these products fill."""
    array = draw.random.integers(-127, 128, shape).astype(np.int8)
    each = np.array([draw.scale(1e-3, 3e-2) for _ in range(channels)], np.float32)
    products = np.prod(shape) / channels
    y = float(np.float32(x.scale * each.max() * 127 / 4 * np.sqrt(products) / draw.random.uniform(0.3, 1.5)))
    bias = np.round(draw.random.uniform(-1, 1, channels) * y * 8000 / (x.scale * each)).astype(np.int64)
    return (Tensor("w", shape, "i8", array, tuple(map(float, each)), axis=axis),
            Tensor("b", (channels,), "i64", bias, tuple(map(float, np.float32(x.scale) * each))), y)


def extent(n: int, k: int, stride: int, padding: int, dilation: int = 1) -> int:
    return -(-n // stride) if padding == SAME else -(-(n - (k - 1) * dilation) // stride)


def convolution(draw: Draw) -> Made:
    (n, m, c, o), (k, l) = (draw.between(5, 9), draw.between(5, 9), draw.between(1, 8), draw.between(1, 8)), draw.shape(2, 3)
    padding, stride, activation = draw.choice(SAME, VALID), draw.between(1, 2), draw.choice(*ACTIVATIONS)
    dilation = draw.choice(1, 1, 2) if stride == 1 else 1
    x = draw.activation("x", (draw.between(1, 2), n, m, c))
    w, b, scale = weights(draw, (o, k, l, c), o, 0, x)
    shape = (x.shape[0], extent(n, k, stride, padding, dilation), extent(m, l, stride, padding, dilation), o)
    options = (Scalar("B", padding), *ints(stride, stride), Scalar("B", activation), *ints(dilation, dilation))
    return one("CONV_2D", [x, w, b], draw.activation("y", shape, scale), options, draw)


def depthwise(draw: Draw) -> Made:
    (n, m, c), (k, l) = (draw.between(5, 9), draw.between(5, 9), draw.between(1, 6)), draw.shape(2, 3)
    multiplier = draw.choice(1, 1, 2)
    padding, stride, activation = draw.choice(SAME, VALID), draw.between(1, 2), draw.choice(*ACTIVATIONS)
    x = draw.activation("x", (1, n, m, c))
    w, b, scale = weights(draw, (1, k, l, c * multiplier), c * multiplier, 3, x)
    shape = (1, extent(n, k, stride, padding), extent(m, l, stride, padding), c * multiplier)
    options = (Scalar("B", padding), *ints(stride, stride, multiplier), Scalar("B", activation), *ints(1, 1))
    return one("DEPTHWISE_CONV_2D", [x, w, b], draw.activation("y", shape, scale), options, draw)


def fully_connected(draw: Draw) -> Made:
    n, k, o = draw.between(1, 5), draw.between(1, 64), draw.between(1, 20)
    x = draw.activation("x", (n, k))
    w, b, scale = weights(draw, (o, k), o, 0, x)
    if draw.choice(0, 1):
        first = draw.scale(1e-3, 3e-2)
        w, b = (Tensor(t.name, t.shape, t.type, t.array, s) for t, s in ((w, first), (b, float(np.float32(x.scale * first)))))
    operands = [x, w, b] if draw.choice(0, 1, 1) else [x, w]
    options = (Scalar("B", draw.choice(*ACTIVATIONS)), Scalar("B", 0), Scalar("B", 0))
    return one("FULLY_CONNECTED", operands, draw.activation("y", (n, o), scale), options, draw)


def transposed_convolution(draw: Draw) -> Made:
    n, m, c, o, stride = draw.between(2, 5), draw.between(2, 5), draw.between(1, 5), draw.between(1, 5), draw.between(1, 2)
    k, l = draw.between(stride, 3), draw.between(stride, 3)
    padding = draw.choice(SAME, VALID)
    x = draw.activation("x", (1, n, m, c))
    w, b, scale = weights(draw, (o, k, l, c), o, 0, x)
    shape = (1, *((a * stride if padding == SAME else (a - 1) * stride + f) for a, f in ((n, k), (m, l))), o)
    operands = [Tensor("s", (4,), "i32", np.array(shape, np.int32)), w, x, *([b] if draw.choice(0, 1) else [])]
    return one("TRANSPOSE_CONV", operands, draw.activation("y", shape, scale),
               (Scalar("B", padding), *ints(stride, stride)), draw)


def matrix_product(draw: Draw) -> Made:
    n, k, m, batch = draw.between(1, 8), draw.between(1, 32), draw.between(1, 8), draw.between(1, 3)
    x, z = draw.activation("x", (batch, n, k)), draw.activation("z", (batch, k, m))
    scale = float(np.float32(x.scale * z.scale * 32768 / 4 * np.sqrt(k) / draw.random.uniform(0.3, 1.5)))
    return one("BATCH_MATMUL", [x, z], draw.activation("y", (batch, n, m), scale), (Scalar("B", 0), Scalar("B", 0)), draw)


# ---- element by element ----------------------------------------------------------------------------------------------
def pair(draw: Draw) -> tuple[Activation, Activation, tuple[int, ...]]:
    shape = draw.shape(draw.between(1, 4))
    other = tuple(n if draw.choice(0, 1, 1) else 1 for n in shape)
    return draw.activation("x", shape), draw.activation("z", other), shape


def sums(kind: str) -> Callable[[Draw], Made]:
    def make(draw: Draw) -> Made:
        x, z, shape = pair(draw)
        scale = float(np.float32(max(x.scale, z.scale) * draw.random.uniform(0.5, 2)))
        options = Scalar("B", draw.choice(*ACTIVATIONS)), Scalar("B", 0)
        return one(kind, [x, z], draw.activation("y", shape, scale), options, draw)
    return make


def product(draw: Draw) -> Made:
    x, z, shape = pair(draw)
    scale = float(np.float32(x.scale * z.scale * 32768 * draw.random.uniform(0.1, 1.2)))
    return one("MUL", [x, z], draw.activation("y", shape, scale), (Scalar("B", draw.choice(*ACTIVATIONS)),), draw)


def of_unit(kind: str, options: Options = ()) -> Callable[[Draw], Made]:
    """Functions whose result has a scale of 2 ** -15."""
    def make(draw: Draw) -> Made:
        shape = draw.shape(draw.between(1, 4))
        x = draw.activation("x", shape, draw.choice(0, 0, 1) * 2.0 ** -12 or draw.scale(3e-5, 1e-3))
        return one(kind, [x], draw.activation("y", shape, 2.0 ** -15), options, draw)
    return make


def unary(kind: str, options: Callable[[Draw], Options] = lambda draw: (), keeps_scale: bool = False) -> Callable[[Draw], Made]:
    def make(draw: Draw) -> Made:
        shape = draw.shape(draw.between(1, 4))
        x = draw.activation("x", shape)
        scale = x.scale if keeps_scale else float(np.float32(x.scale * draw.random.uniform(0.4, 1.5)))
        return one(kind, [x], draw.activation("y", shape, scale), options(draw), draw)
    return make


def prelu(draw: Draw) -> Made:
    shape = draw.shape(4)
    x = draw.activation("x", shape)
    slopes = draw.random.integers(-127, 128, (1, 1, shape[3])).astype(np.int8)
    scale = float(np.float32(x.scale * draw.random.uniform(0.7, 1.5)))
    alpha = Tensor("a", slopes.shape, "i8", slopes, draw.scale(1e-3, 1e-2))
    return one("PRELU", [x, alpha], draw.activation("y", shape, scale), (), draw)


def requantized(draw: Draw) -> Made:
    shape = draw.shape(draw.between(1, 4))
    x = draw.activation("x", shape)
    type = "i8" if draw.choice(0, 1) else "i16"
    scale = float(np.float32(x.scale * draw.random.uniform(0.4, 2) * (256 if type == "i8" else 1)))
    return one("QUANTIZE", [x], Tensor("y", shape, type, None, scale, draw.between(-128, 127) if type == "i8" else 0), (), draw)


# ---- places ----------------------------------------------------------------------------------------------------------
def pool(kind: str) -> Callable[[Draw], Made]:
    def make(draw: Draw) -> Made:
        n, m, c = draw.between(4, 9), draw.between(4, 9), draw.between(1, 6)
        (k, l), padding, stride = draw.shape(2, 4), draw.choice(SAME, VALID), draw.between(1, 2)
        x = draw.activation("x", (1, n, m, c))
        y = draw.activation("y", (1, extent(n, k, stride, padding), extent(m, l, stride, padding), c), x.scale)
        options = Scalar("B", padding), *ints(stride, stride, l, k), Scalar("B", draw.choice(*ACTIVATIONS))
        return one(kind, [x], y, options, draw)
    return make


def reduction(kind: str) -> Callable[[Draw], Made]:
    def make(draw: Draw) -> Made:
        shape = draw.shape(draw.between(2, 4))
        axes = sorted(draw.random.choice(len(shape), draw.between(1, len(shape) - 1), replace=False).tolist())
        keep = draw.choice(0, 1)
        result = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
        x = draw.activation("x", shape)
        factor = {"MEAN": draw.random.uniform(0.3, 1.2), "SUM": draw.random.uniform(1, 6)}.get(kind, 1.0)
        operands = [x, Tensor("a", (len(axes),), "i32", np.array(axes, np.int32))]
        y = draw.activation("y", result, float(np.float32(x.scale * factor)))
        return one(kind, operands, y, (Scalar("B", keep),), draw)
    return make


def padded(draw: Draw) -> Made:
    shape = draw.shape(4, 5)
    amounts = draw.random.integers(0, 3, (4, 2)).astype(np.int32)
    x = draw.activation("x", shape)
    y = draw.activation("y", tuple(int(n) for n in np.array(shape) + amounts.sum(1)), x.scale)
    return one("PAD", [x, Tensor("p", (4, 2), "i32", amounts)], y, (), draw)


def joined(draw: Draw) -> Made:
    shape, axis = list(draw.shape(3)), draw.between(0, 2)
    scale = draw.scale()
    parts = []
    for name in "xz":
        shape[axis] = draw.between(1, 5)
        parts.append(draw.activation(name, tuple(shape), scale))
    shape[axis] = sum(p.shape[axis] for p in parts)
    return one("CONCATENATION", parts, draw.activation("y", tuple(shape), scale), (*ints(axis), Scalar("B", 0)), draw)


def reshaped(draw: Draw) -> Made:
    shape = draw.shape(3)
    x = draw.activation("x", shape)
    size = int(np.prod(shape))
    operands = [x, Tensor("s", (1,), "i32", np.array([size], np.int32))]
    return one("RESHAPE", operands, draw.activation("y", (size,), x.scale), (), draw)


def transposed(draw: Draw) -> Made:
    shape, order = draw.shape(4), draw.random.permutation(4).astype(np.int32)
    x = draw.activation("x", shape)
    y = draw.activation("y", tuple(shape[i] for i in order), x.scale)
    return one("TRANSPOSE", [x, Tensor("o", (4,), "i32", order)], y, (), draw)


def resized(kind: str) -> Callable[[Draw], Made]:
    def make(draw: Draw) -> Made:
        n, m, c = draw.between(2, 6), draw.between(2, 6), draw.between(1, 4)
        size = (draw.between(2, 12), draw.between(2, 12)) if draw.choice(0, 1) else (2 * n, 2 * m)
        x = draw.activation("x", (1, n, m, c))
        flags = ((0, 0), (0, 1), (1, 0))[draw.between(0, 2)]
        blank = (None, None) if kind == "RESIZE_BILINEAR" else ()
        return one(kind, [x, Tensor("s", (2,), "i32", np.array(size, np.int32))],
                   draw.activation("y", (1, *size, c), x.scale), (*blank, *(Scalar("B", f) for f in flags)), draw)
    return make


def extremes(kind: str) -> Callable[[Draw], Made]:
    def make(draw: Draw) -> Made:
        x, z, shape = pair(draw)
        z = Tensor("z", z.shape, "i16", None, x.scale)
        return one(kind, [x, z], draw.activation("y", shape, x.scale), (), draw)
    return make


FAMILIES: dict[str, Callable[[Draw], Made]] = {
    "CONV_2D": convolution, "DEPTHWISE_CONV_2D": depthwise, "FULLY_CONNECTED": fully_connected, "BATCH_MATMUL": matrix_product,
    "TRANSPOSE_CONV": transposed_convolution, "MUL": product, "PRELU": prelu, "QUANTIZE": requantized, "PAD": padded,
    "CONCATENATION": joined, "RESHAPE": reshaped, "TRANSPOSE": transposed,
    "SOFTMAX": of_unit("SOFTMAX", (real(1.0),)),
    "LEAKY_RELU": unary("LEAKY_RELU", lambda draw: (real(draw.random.uniform(0.01, 0.5)),)),
    **{kind: sums(kind) for kind in ("ADD", "SUB")}, **{kind: of_unit(kind) for kind in ("LOGISTIC", "TANH")},
    **{kind: unary(kind) for kind in ("RELU", "RELU6", "ABS", "EXP", "LOG", "RSQRT")},
    **{kind: pool(kind) for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D")},
    **{kind: reduction(kind) for kind in ("MEAN", "SUM", "REDUCE_MAX")},
    **{kind: resized(kind) for kind in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")},
    **{kind: extremes(kind) for kind in ("MAXIMUM", "MINIMUM")}}
"""By the operator's kind."""


def made(kind: str, seed: int) -> Made:
    return FAMILIES[kind](Draw(seed))
