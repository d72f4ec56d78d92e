"""Graph -> graph: FFT2D and RFFT2D as products of matrices, which the schedules make fast.

A transform of length n1 * n2 is n2 transforms of length n1, a multiplication by roots of unity, and n1 transforms of
length n2 (Cooley and Tukey). Lengths of at most 32 are one product with a matrix of at most 64 x 64 real numbers: real and
imaginary parts lie side by side, [r, 2, n, t] for r transforms of length n whose elements are t apart, so that a complex
product is a real one. Every product reads and writes whole vectors, and no transposition is a pass of its own.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...runtime.errors import Position
from ..dialects.tosa.binary import Add, Mul
from ..dialects.tosa.bitwise import LogicalAnd
from ..dialects.tosa.data import Const, ConstShape
from ..dialects.tosa.fourier import halves
from ..dialects.tosa.layout import Concat, Reshape, Reverse, Slice, Tile, Transpose
from ..dialects.tosa.matmul import MatMul
from ..dialects.tosa.ternary import Select
from ..graph.graph import BlockBuilder, Module, Operation, Value
from ..graph.operator import Op
from ..graph.types import Array
from .expand import expand

LARGEST_BITS = 5
"""Lengths of up to 2**5 are one product."""


def expand_transforms(module: Module) -> Module:
    """The module without FFT2D and RFFT2D of known extents; unchanged (the same object) if it has none."""
    return expand(module, is_transform, transform)


def is_transform(operation: Operation) -> bool:
    return operation.op.name in ("tosa.fft2d", "tosa.rfft2d") and all(v.tensor.is_static for v in operation.operands)


def transform(builder: BlockBuilder, operation: Operation) -> tuple[Value, ...]:
    """The two parts of the result: rows first, then columns."""
    inputs, graph = operation.operands, Graph(builder, operation.position)
    batch, height, width = inputs[0].tensor.dims
    if operation.op.name == "tosa.rfft2d":
        rows, columns = row_transform(graph, inputs[0], inputs[0].tensor.dims, 1, 1.0, half=True)
        parts = column_transform(graph, rows, (batch, height, columns), 1.0)
        shape = (batch, height, width // 2 + 1)
        real, imaginary = (graph.leading(part, shape) for part in parts)
        return real, without_corners(graph, imaginary, height, width)
    sign = -1.0 if operation.op.inverse else 1.0  # type: ignore[attr-defined]
    both = graph.add(Concat(2), *(graph.reshape(x, batch, height, 1, width) for x in inputs))
    rows, _ = row_transform(graph, both, inputs[0].tensor.dims, 2, sign)
    return column_transform(graph, rows, inputs[0].tensor.dims, sign)


@dataclass(frozen=True, slots=True)
class Graph:
    """The operations that replace a transform."""
    builder: BlockBuilder
    position: Position | None

    def add(self, op: Op, *operands: Value) -> Value:
        return self.builder.add(op, *operands, position=self.position)[0]

    def constant(self, values: Array) -> Value:
        return self.add(Const(values))

    def shape(self, *extents: int) -> Value:
        return self.add(ConstShape(np.array(extents, np.int64)))

    def reshape(self, x: Value, *extents: int) -> Value:
        return x if x.tensor.dims == extents else self.add(Reshape(), x, self.shape(*extents))

    def transpose(self, x: Value, *perms: int) -> Value:
        return self.add(Transpose(perms), x)

    def product(self, a: Value, b: Value) -> Value:
        zero = self.constant(np.zeros(1, np.float32))
        return self.add(MatMul(), a, b, zero, zero)

    def times(self, a: Value, b: Value) -> Value:
        return self.add(Mul(), a, b, self.constant(np.zeros(1, np.int8)))

    def repeated(self, matrix: Array, times: int) -> Value:
        """A matrix for each of so many products."""
        return self.add(Tile(), self.constant(matrix[None]), self.shape(times, 1, 1))

    def leading(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The first elements along each axis."""
        return self.add(Slice(), x, self.shape(*(0 for _ in shape)), self.shape(*shape))


# ---- two axes ----------------------------------------------------------------------------------------------------
def row_transform(graph: Graph, x: Value, shape: tuple[int, ...], parts: int, sign: float, half: bool = False
                  ) -> tuple[Value, int]:
    """Transforms of the rows of x, [N, H, parts, W] in row-major order: [N, 2, H, columns], and the number of columns.
    With `half` they are the W/2 + 1 that matter, and a few more."""
    batch, height, width = shape
    *before, last = factors(width)
    rows, t = batch * height, 1
    for factor in before:
        x = stage(graph, x, (rows, parts, width // t, t), factor, sign)
        parts, t = 2, t * factor
    outputs = last // 2 + 1 if half else last
    matrix = fourier_matrix(last, sign)[:, :outputs, :parts].reshape(2 * outputs, parts * last)
    if t == 1:
        found = graph.product(graph.reshape(x, 1, rows, parts * last), graph.constant(matrix.T[None]))
    else:
        found = graph.product(graph.repeated(matrix, rows), graph.reshape(x, rows, parts * last, t))
    split = graph.reshape(found, batch, height, 2, outputs, t)
    return graph.transpose(split, 0, 2, 1, 3, 4), outputs * t


def column_transform(graph: Graph, x: Value, shape: tuple[int, ...], sign: float) -> tuple[Value, Value]:
    """Transforms of the columns of x, [N, 2, H, W] in row-major order, as real and imaginary parts [N, H, W]."""
    batch, height, t = shape
    *before, last = factors(height)
    for factor in before:
        x = stage(graph, x, (batch, 2, height * shape[2] // t, t), factor, sign)
        t *= factor
    flat = graph.reshape(x, batch, 2 * last, t)
    parts = (graph.repeated(part.reshape(last, 2 * last), batch) for part in fourier_matrix(last, sign))
    real, imaginary = (graph.reshape(graph.product(part, flat), *shape) for part in parts)
    return real, imaginary


def without_corners(graph: Graph, imaginary: Value, height: int, width: int) -> Value:
    """0 where all angles are multiples of a half turn: sums that the specification leaves out."""
    rows, columns = np.zeros((1, height, 1), bool), np.zeros((1, 1, width // 2 + 1), bool)
    rows[:, list(halves(height))], columns[:, :, list(halves(width))] = True, True
    corners = graph.add(LogicalAnd(), graph.constant(rows), graph.constant(columns))
    return graph.add(Select(), corners, graph.constant(np.zeros((1, 1, 1), np.float32)), imaginary)


# ---- one axis ----------------------------------------------------------------------------------------------------
def stage(graph: Graph, x: Value, extents: tuple[int, int, int, int], factor: int, sign: float) -> Value:
    """One factor of a longer transform. x is [r, parts, n, t] in row-major order, with n = factor * rest; the result is
    [r, 2, rest, factor * t]: what is left are transforms of length `rest`."""
    rows, parts, n, t = extents
    rest = n // factor
    matrix = fourier_matrix(factor, sign)[:, :, :parts].reshape(2 * factor, parts * factor)
    if t == 1:
        columns = graph.transpose(graph.reshape(x, rows, parts * factor, rest), 0, 2, 1)
        found = graph.product(columns, graph.repeated(matrix.T, rows))
        split, order = graph.reshape(found, rows, rest, 2, factor, 1), (0, 2, 1, 3, 4)
    else:
        found = graph.product(graph.repeated(matrix, rows), graph.reshape(x, rows, parts * factor, rest * t))
        split, order = graph.reshape(found, rows, 2, factor, rest, t), (0, 1, 3, 2, 4)
    return graph.transpose(twiddled(graph, split, factor, rest, sign, t == 1), *order)


def twiddled(graph: Graph, x: Value, factor: int, rest: int, sign: float, by_rest: bool) -> Value:
    """x times exp(-sign * 2 pi i * k * m / n) for k below `factor` and m below `rest`, n = factor * rest. x is
    [r, rest, 2, factor, 1] with `by_rest`, else [r, 2, factor, rest, t]."""
    cosine, sine = roots(factor * rest, np.outer(np.arange(rest), np.arange(factor)), sign)
    if by_rest:
        axis, same, other = 2, cosine[None, :, None, :, None], np.stack([sine, -sine], 1)[None, :, :, :, None]
    else:
        axis, same, other = 1, cosine.T[None, None, :, :, None], np.stack([sine.T, -sine.T])[None, :, :, :, None]
    swapped = graph.add(Reverse(axis), x)  # the imaginary part beside the real one
    return graph.add(Add(), graph.times(x, graph.constant(same)), graph.times(swapped, graph.constant(other)))


def factors(n: int) -> list[int]:
    """Powers of two, as few and as equal as possible, whose product is n."""
    bits = n.bit_length() - 1
    count = max(1, math.ceil(bits / LARGEST_BITS))
    return [1 << (bits // count + (i < bits % count)) for i in range(count)]


def fourier_matrix(n: int, sign: float) -> Array:
    """[part, k, part, m]: what the part of input m adds to the part of output k."""
    cosine, sine = roots(n, np.outer(np.arange(n), np.arange(n)), sign)
    return np.stack([np.stack([cosine, sine], 1), np.stack([-sine, cosine], 1)])


def roots(n: int, k: Array, sign: float) -> tuple[Array, Array]:
    """cos and sign * sin of 2 pi k / n; exact at quarter turns."""
    turns = np.arange(n) / n
    cosine, sine = np.cos(2 * np.pi * turns), sign * np.sin(2 * np.pi * turns)
    exact = 4 * np.arange(n) % n == 0
    cosine[exact], sine[exact] = np.rint(cosine[exact]), np.rint(sine[exact])
    return cosine.astype(np.float32)[k % n], sine.astype(np.float32)[k % n]
