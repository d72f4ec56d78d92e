"""Operators on shapes as lists: CONCAT_SHAPE, SLICE_SHAPE, ASSERT_EQUAL_SHAPE, and DIM, which gives an extent of a tensor. TOSA
1.1, shape operators. `shape.py` has the arithmetic on extents.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem, require
from ...graph.operator import Op, Operand, attribute
from ...graph.types import I32, Array, BlockScaled, ShapeType
from .operands import axis_of, integers, one_element, tensor
from .shape import Numbers, ShapeOp, as_shape, length, numbers, same_length


class ConcatShape(ShapeOp, name="tosa.concat_shape"):
    """Shapes one after the other; none of them is empty."""

    def infer(self, *shapes: Operand) -> ShapeType:
        require(len(shapes) > 0, "at least one shape is needed")
        ranks = [length(operand, f"operand {number}") for number, operand in enumerate(shapes)]
        require(0 not in ranks, "a shape without extents cannot be part of another", kind="shape")
        return ShapeType(sum(ranks))

    def fold(self, *shapes: Numbers) -> list[int]:
        return [n for shape in shapes for n in shape]

    def reference(self, *shapes: Array) -> Array:
        return np.concatenate(shapes)


class SliceShape(ShapeOp, name="tosa.slice_shape"):
    """`size` extents from extent `start` on; both are one i32, known when compiling."""

    def infer(self, shape: Operand, start: Operand, size: Operand) -> ShapeType:
        rank = length(shape, "the operand")
        one_element(start, I32, "the start")
        one_element(size, I32, "the size")
        (first,), (count,) = integers(start, "the start", 1), integers(size, "the size", 1)
        require(count > 0, f"the size must be positive, it is {count}", kind="shape")
        require(first >= 0, f"the start must not be negative, it is {first}", kind="shape")
        require(first + count <= rank, f"a shape of {rank} extents has no {count} from {first} on", kind="shape")
        return ShapeType(count)

    def fold(self, *shapes: Numbers) -> Numbers:
        shape, (first,), (count,) = shapes
        return shape[first:first + count]

    def reference(self, shape: Array, start: Array, size: Array) -> Array:
        return shape[start.item() + np.arange(size.item())]


class AssertEqualShape(Op, name="tosa.assert_equal_shape"):
    """No result: two shapes that must be equal when compiling. With `allow_broadcast`, an extent of 1 in either equals
    any."""
    allow_broadcast: bool = attribute("bool")

    def infer(self, shape1: Operand, shape2: Operand) -> tuple[()]:
        same_length(shape1, shape2)
        if (known := numbers((shape1, shape2))) is not None:
            first, second = known
            equal = all(n == m or (self.allow_broadcast and 1 in (n, m)) for n, m in zip(first, second))
            require(equal, f"{list(first)} and {list(second)} must be equal{', or 1,' * self.allow_broadcast} in each "
                    "extent", kind="shape")
        return ()

    def reference(self, a: Array, b: Array) -> tuple[()]:
        free = ((a == 1) | (b == 1)) & self.allow_broadcast
        require(bool(np.all((a == b) | free)), f"shapes {a.tolist()} and {b.tolist()} differ", kind="shape")
        return ()


class Dim(Op, name="tosa.dim"):
    """The extent of a tensor along an axis, as a shape of one."""
    axis: int = attribute("i32")

    def infer(self, x: Operand) -> ShapeType:
        shape = axis_of(x, self.axis)
        element = tensor(x, "the input").element
        if isinstance(element, BlockScaled) and (last := shape[-1]) is not None:
            require(last % element.block == 0, f"the last axis of {x.type} is no multiple of {element.block}",
                    kind="shape")
        return ShapeType(1)

    def constant(self, operands: Sequence[Operand]) -> Array | None:
        try:
            self.result_types(operands)
            extent = axis_of(operands[0], self.axis)[self.axis]
        except Problem:  # `infer` raises it again when the graph is checked
            return None
        return None if extent is None else as_shape([extent])

    def reference(self, x: Array) -> Array:
        return np.array(x.shape, np.int64)[[self.axis]]
