"""CONCAT, PAD, RESHAPE, REVERSE, SLICE, TILE, TRANSPOSE: operators that only move elements.

Their expressions are index arithmetic, so that they cost nothing when fused. Any element type is accepted.
"""
from __future__ import annotations

import math
from functools import reduce as fold

import numpy as np

from ....runtime.errors import Problem, require
from ...elements.affine import Affine, Range
from ...elements.expression import Expr, IndexValue, guard
from ...elements.tensor import Element, NotAffine, Tensor, gathered
from ...graph.operator import Op, Operand, attribute
from ...graph.types import Array, BlockScaled, TensorType
from .operands import Shape, axis_of, extents, known, one_element, product, same_shape, tensor, written


class Concat(Op, name="tosa.concat"):
    """Tensors one after the other along an axis. TOSA 1.0, data layout."""
    axis: int = attribute("i32")

    def infer(self, *operands: Operand) -> TensorType:
        require(len(operands) > 0, "a concat needs at least one operand")
        first = tensor(operands[0], "operand 0")
        shape: Shape = axis_of(operands[0], self.axis)
        for number, operand in enumerate(operands[1:], 1):
            other = tensor(operand, f"operand {number}")
            require(other.element == first.element, f"operand {number} is {other}, the first is {first}")
            require(other.rank == first.rank, f"the rank of operand {number}, {other}, is not that of {first}",
                    kind="shape")
            shape = self.joined(shape, axis_of(operand, self.axis), number)
        return TensorType(shape, first.element)

    def joined(self, shape: Shape, other: Shape, number: int) -> Shape:
        a, b = shape[self.axis], other[self.axis]
        rest, beside = ((*s[:self.axis], *s[self.axis + 1:]) for s in (shape, other))
        require(same_shape(rest, beside), f"operand {number} is {written(other)}, those before it {written(shape)}: "
                f"they may differ along axis {self.axis} only", kind="shape")
        both = list(map(known, rest, beside))
        return (*both[:self.axis], None if a is None or b is None else a + b, *both[self.axis:])

    def reference(self, *arrays: Array) -> Array:
        return np.concatenate(arrays, axis=self.axis)

    def element(self, out: TensorType, *operands: Tensor) -> Element:
        def element(*index: Affine) -> Expr:
            start, parts = 0, []
            for x in operands:
                extent = x.type.dims[self.axis]
                place = index[self.axis] - start
                parts.append((Range(place, 0, extent), x[*index[:self.axis], place, *index[self.axis + 1:]]))
                start += extent
            return fold(lambda rest, part: guard((part[0],), part[1], rest), reversed(parts[:-1]), parts[-1][1])

        return element


class Pad(Op, name="tosa.pad"):
    """A border of one value; `padding` holds before and after for each axis. TOSA 1.0, data layout."""

    def infer(self, x: Operand, padding: Operand, pad_const: Operand) -> TensorType:
        found = tensor(x, "the input")
        require(found.rank > 0, f"{found} has no axis to pad", kind="shape")
        one_element(pad_const, found.element, "the value of the border")
        numbers = extents(padding, "the padding", 2 * found.rank)
        sides = list(zip(found.shape or (), numbers[::2], numbers[1::2]))
        require(all(side is None or side >= 0 or is_left_open(side, n) for n, *both in sides for side in both),
                f"padding must not be negative, it is {list(numbers)}", kind="shape", help=LEFT_OPEN)
        return TensorType(tuple(None if n is None or before is None or after is None else before + n + after
                                for n, before, after in sides), found.element)

    def reference(self, x: Array, padding: Array, pad_const: Array) -> Array:
        numbers = padding.reshape(-1, 2).tolist()
        result = np.full([before + n + after for n, (before, after) in zip(x.shape, numbers)],
                         pad_const.reshape(-1)[0], x.dtype)
        result[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, numbers))] = x
        return result

    def element(self, out: TensorType, x: Tensor, padding: Tensor, pad_const: Tensor) -> Element:
        before = padding.integers[::2]
        return lambda *index: x.within(*(i - b for i, b in zip(index, before)), outside=pad_const.scalar())


class Reshape(Op, name="tosa.reshape"):
    """The same elements in row-major order; one extent of the shape may be -1 and follows. TOSA 1.0, data layout."""

    def infer(self, x: Operand, shape: Operand) -> TensorType:
        require(isinstance(x.type, TensorType), f"the input must be a tensor, not {x.type}")
        numbers = extents(shape, "the shape")
        if None in numbers:
            return TensorType(numbers, x.type.element)
        unknown = numbers.count(-1)
        require(unknown <= 1 and all(n is not None and (n > 0 or n == -1) for n in numbers),
                f"{list(numbers)} is not a shape: extents are 1 or more, and at most one is -1", kind="shape")
        size = None if x.type.shape is None else product(x.type.shape)
        rest = math.prod(n for n in numbers if n is not None and n != -1)
        if size is not None:
            require(size % rest == 0 if unknown else size == rest,
                    f"{x.type} has {size} elements, {written(numbers)} does not", kind="shape")
        elif not unknown:
            part = math.prod(n for n in x.type.shape or () if n is not None)
            require(part > 0 and rest % part == 0,
                    f"{x.type} has a multiple of {part} elements, {written(numbers)} does not", kind="shape")
        missing = None if size is None else size // rest
        return TensorType(tuple(missing if n == -1 else n for n in numbers), x.type.element)

    def reference(self, x: Array, shape: Array) -> Array:
        return x.reshape(shape.reshape(-1).tolist())

    def element(self, out: TensorType, x: Tensor, shape: Tensor) -> Element:
        groups = regrouped(x.type.dims, out.dims)

        def element(*index: Affine) -> Expr:
            place = [Affine()] * x.type.rank
            for source, result in groups:
                if len(source) == len(result) == 1:  # an unchanged axis needs no arithmetic, in range or not
                    place[source[0]] = index[result[0]]
                    continue
                flat = Affine()
                for d in result:
                    flat = flat * out.dims[d] + index[d]
                for d in reversed(source[1:]):
                    parts = flat.divide(x.type.dims[d])
                    if parts is None:
                        raise NotAffine(f"reshape of {x.type} to {out}")
                    flat, place[d] = parts
                place[source[0]] = flat
            return x[tuple(place)]

        return element


def regrouped(source: tuple[int, ...], result: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the axes (extent above 1) of two shapes of one size, in the smallest groups that hold the same elements."""
    rest_source = [d for d, n in enumerate(source) if n != 1]
    rest_result = [d for d, n in enumerate(result) if n != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while rest_source:
        left, right = [rest_source.pop(0)], [rest_result.pop(0)]
        while (a := math.prod(source[d] for d in left)) != (b := math.prod(result[d] for d in right)):
            if a < b:
                left.append(rest_source.pop(0))
            else:
                right.append(rest_result.pop(0))
        groups.append((left, right))
    return groups


class Reverse(Op, name="tosa.reverse"):
    """An axis from its end to its start. TOSA 1.0, data layout."""
    axis: int = attribute("i32")

    def infer(self, x: Operand) -> TensorType:
        return TensorType(axis_of(x, self.axis), tensor(x, "the input").element)

    def reference(self, x: Array) -> Array:
        return np.flip(x, self.axis)

    def element(self, out: TensorType, x: Tensor) -> Element:
        last = out.dims[self.axis] - 1
        return lambda *index: x[*index[:self.axis], index[self.axis] * -1 + last, *index[self.axis + 1:]]


class Slice(Op, name="tosa.slice"):
    """`size` elements from `start` along each axis; in MLIR -1 stands for all that follow. TOSA 1.0, data layout."""

    def infer(self, x: Operand, start: Operand, size: Operand) -> TensorType:
        found = tensor(x, "the input")
        require(found.rank > 0, f"{found} has no axis to slice", kind="shape")
        starts, sizes = extents(start, "the start", found.rank), extents(size, "the size", found.rank)
        require(all(n is None or n >= 0 for n in starts), f"start must not be negative, it is {list(starts)}",
                kind="shape")
        require(all(n is None or n > 0 or n == -1 for n in sizes), f"size must be positive, it is {list(sizes)}", kind="shape")
        for axis, (first, length, extent) in enumerate(zip(starts, sizes, found.shape or ())):
            require(first is None or length is None or extent is None or first + max(length, 1) <= extent,
                    f"axis {axis} of {found} has no {max(length or 1, 1)} elements from {first} on", kind="shape")
        rest = [None if n is None or first is None else n - first for n, first in zip(found.shape or (), starts)]
        if isinstance(found.element, BlockScaled):
            require(starts[-1] is None or starts[-1] % found.element.block == 0,
                    f"the slice starts at {starts[-1]}, inside a block of {found.element.block}", kind="shape")
        return TensorType(tuple(r if n == -1 else n for n, r in zip(sizes, rest)), found.element)

    def reference(self, x: Array, start: Array, size: Array) -> Array:
        return x[tuple(slice(s, None if n == -1 else s + n)
                       for s, n in zip(start.reshape(-1).tolist(), size.reshape(-1).tolist()))]

    def element(self, out: TensorType, x: Tensor, start: Tensor, size: Tensor) -> Element:
        starts = start.integers
        return lambda *index: x[tuple(i + s for i, s in zip(index, starts))]


class Tile(Op, name="tosa.tile"):
    """The tensor `multiples` times along each axis. TOSA 1.0, data layout."""

    def infer(self, x: Operand, multiples: Operand) -> TensorType:
        found = tensor(x, "the input")
        require(found.rank > 0, f"{found} has no axis to repeat", kind="shape")
        times = extents(multiples, "the multiples", found.rank)
        require(all(t is None or t > 0 or is_left_open(t, n) for t, n in zip(times, found.shape or ())),
                f"multiples must be positive, they are {list(times)}", kind="shape", help=LEFT_OPEN)
        return TensorType(tuple(None if n is None or t is None else n * t for n, t in zip(found.shape or (), times)),
                          found.element)

    def reference(self, x: Array, multiples: Array) -> Array:
        return np.tile(x, multiples.reshape(-1).tolist())

    def element(self, out: TensorType, x: Tensor, multiples: Tensor) -> Element:
        times = multiples.integers
        return lambda *index: x[tuple(i if t == 1 else remainder(i, n) for i, n, t in zip(index, x.type.dims, times))]


class Transpose(Op, name="tosa.transpose"):
    """Axis perms[i] of the input becomes axis i. TOSA 1.0, data layout."""
    perms: tuple[int, ...] = attribute("array<i32>")

    def infer(self, x: Operand) -> TensorType:
        found = tensor(x, "the input")
        require(found.rank > 0, f"{found} has no axis to move", kind="shape")
        if sorted(self.perms) != list(range(found.rank)):
            raise Problem(f"{list(self.perms)} is no order of the {found.rank} axes of {found}", kind="attribute")
        require(not isinstance(found.element, BlockScaled) or self.perms[-1] == found.rank - 1,
                f"the last axis of {found} holds its blocks, and must stay the last", kind="attribute")
        assert found.shape is not None
        return TensorType(tuple(found.shape[p] for p in self.perms), found.element)

    def reference(self, x: Array) -> Array:
        return np.ascontiguousarray(x.transpose(self.perms))

    def element(self, out: TensorType, x: Tensor) -> Element:
        source = [self.perms.index(d) for d in range(len(self.perms))]
        return lambda *index: x[tuple(index[d] for d in source)]


LEFT_OPEN = "-1 stands for a number that MLIR could not infer; here it has to be known"


def is_left_open(number: int, extent: int | None) -> bool:
    """True if MLIR leaves a number of PAD or TILE open, along an axis whose extent is unknown, too."""
    return number == -1 and extent is None


def remainder(index: Affine, extent: int) -> Affine:
    """Return index % extent, computed at run time if it is not affine."""
    if (parts := index.divide(extent)) is not None:
        return parts[1]
    value = IndexValue(index)
    return gathered(value - value / extent * extent, extent)
