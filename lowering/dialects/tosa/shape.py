"""Arithmetic on shapes, lists of extents that are computed at compile time. TOSA 1.1, shape operators. `shape_lists.py` has the
operators that concatenate and slice such lists.

A shape is known if all its inputs are known: `constant` folds the operator on Python integers, so that RESHAPE, SLICE, pools
and the like find the result in `operand.constant`, and no code is generated for it. Numbers of a shape must fit a
`tensor_size_t`, which at level 8K has 32 bits.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem, require
from ...graph.operator import Op, Operand
from ...graph.types import Array, ShapeType

Numbers = tuple[int, ...]
MAXIMUM_LOG2_SIZE = 31
"""Exponent of the bound of a shape's numbers: they are in [-2**31, 2**31) at level 8K."""


def length(operand: Operand, what: str) -> int:
    """Return the number of extents of an operand that must be a shape."""
    found = operand.type
    require(isinstance(found, ShapeType), f"{what} must be a shape, it is {found}")
    rank: int = found.rank
    return rank


def numbers(operands: Sequence[Operand]) -> tuple[Numbers, ...] | None:
    """Return the extents of each operand; None if those of one are unknown."""
    data = [operand.constant for operand in operands]
    return None if any(d is None for d in data) else tuple(tuple(map(int, d.reshape(-1))) for d in data if d is not None)


def as_shape(extents: Sequence[int]) -> Array:
    """Return extents as the data of a value; read-only, like all data of a graph."""
    array = np.array(extents, np.int64).reshape(len(extents))
    array.flags.writeable = False
    return array


class ShapeOp(Op):
    """An operator whose result is a shape: `fold` computes it from known operands, or raises a Problem."""

    def fold(self, *shapes: Numbers) -> Sequence[int]:
        raise AssertionError(self.name)

    def checked(self, *operands: Operand) -> Sequence[int] | None:
        """Return the result's extents, if they are known; raise a Problem if one is undefined or out of range."""
        known = numbers(operands)
        if known is None:
            return None
        result = self.fold(*known)
        for extent in result:
            require(-(1 << MAXIMUM_LOG2_SIZE) <= extent < 1 << MAXIMUM_LOG2_SIZE,
                    f"{extent} is beyond what a shape may hold, [-2^{MAXIMUM_LOG2_SIZE}, 2^{MAXIMUM_LOG2_SIZE})",
                    kind="level")
        return result

    def constant(self, operands: Sequence[Operand]) -> Array | None:
        try:
            self.result_types(operands)
            extents = self.checked(*operands)
        except Problem:  # `infer` raises it again when the graph is checked
            return None
        return None if extents is None else as_shape(extents)


# ---- extent by extent --------------------------------------------------------------------------------------------
class UnaryShape(ShapeOp):
    """An operator on each extent of a shape. Subclasses define `extent` (Python) and `reference` (NumPy)."""

    def infer(self, shape: Operand) -> ShapeType:
        rank = length(shape, "the operand")
        self.checked(shape)
        return ShapeType(rank)

    def fold(self, *shapes: Numbers) -> list[int]:
        return [self.extent(n) for n in shapes[0]]

    def extent(self, n: int) -> int:
        raise AssertionError(self.name)


class BinaryShape(ShapeOp):
    """An operator on each pair of extents of two shapes of one length."""

    def infer(self, shape1: Operand, shape2: Operand) -> ShapeType:
        rank = same_length(shape1, shape2)
        self.checked(shape1, shape2)
        return ShapeType(rank)

    def fold(self, *shapes: Numbers) -> list[int]:
        return [self.extent(n, m) for n, m in zip(*shapes)]

    def extent(self, n: int, m: int) -> int:
        raise AssertionError(self.name)


def same_length(shape1: Operand, shape2: Operand) -> int:
    """Return the common length of two shapes."""
    first, second = length(shape1, "the first operand"), length(shape2, "the second operand")
    require(first == second, f"the shapes have {first} and {second} extents, not as many as each other", kind="shape")
    return first


class AddShape(BinaryShape, name="tosa.add_shape"):
    """Sums of extents."""

    def extent(self, n: int, m: int) -> int:
        return n + m

    def reference(self, a: Array, b: Array) -> Array:
        return np.add(a, b)


class SubShape(BinaryShape, name="tosa.sub_shape"):
    """Differences of extents."""

    def extent(self, n: int, m: int) -> int:
        return n - m

    def reference(self, a: Array, b: Array) -> Array:
        return np.subtract(a, b)


class MulShape(BinaryShape, name="tosa.mul_shape"):
    """Products of extents."""

    def extent(self, n: int, m: int) -> int:
        return n * m

    def reference(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)


class MaxShape(BinaryShape, name="tosa.max_shape"):
    """The greater extent of each pair."""

    def extent(self, n: int, m: int) -> int:
        return max(n, m)

    def reference(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


class MinShape(BinaryShape, name="tosa.min_shape"):
    """The smaller extent of each pair."""

    def extent(self, n: int, m: int) -> int:
        return min(n, m)

    def reference(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


class ShapeDivision(BinaryShape):
    """A division of extents. Subclasses define `divided` of the truncated quotient and the remainder. The specification
    requires nonnegative dividends and positive divisors; here only a divisor of 0 is refused."""

    def extent(self, n: int, m: int) -> int:
        require(m != 0, f"{n} is divided by 0", kind="shape")
        quotient = abs(n) // abs(m) * (1 if (n < 0) == (m < 0) else -1)
        return self.divided(quotient, n - quotient * m)

    def divided(self, quotient: int, rest: int) -> int:
        raise AssertionError(self.name)


def truncated(a: Array, b: Array) -> Array:
    """Return a / b rounded towards 0, in NumPy."""
    return np.asarray((a - np.fmod(a, b)) // b)


class DivCeilShape(ShapeDivision, name="tosa.div_ceil_shape"):
    """Quotients, rounded up."""

    def divided(self, quotient: int, rest: int) -> int:
        return quotient + (rest != 0)

    def reference(self, a: Array, b: Array) -> Array:
        return np.asarray(truncated(a, b) + (np.fmod(a, b) != 0))


class DivFloorShape(ShapeDivision, name="tosa.div_floor_shape"):
    """Quotients, rounded down."""

    def divided(self, quotient: int, rest: int) -> int:
        return quotient

    def reference(self, a: Array, b: Array) -> Array:
        return truncated(a, b)


class ModShape(ShapeDivision, name="tosa.mod_shape"):
    """Remainders of extents."""

    def divided(self, quotient: int, rest: int) -> int:
        return rest

    def reference(self, a: Array, b: Array) -> Array:
        return np.asarray(np.fmod(a, b))


class Exp2Shape(UnaryShape, name="tosa.exp2_shape"):
    """2 to the power of each extent, which is at least 0 and below 31."""

    def extent(self, n: int) -> int:
        require(0 <= n < MAXIMUM_LOG2_SIZE, f"2 to the power {n}: the power must be in [0, {MAXIMUM_LOG2_SIZE})",
                kind="level")
        return 1 << n

    def reference(self, x: Array) -> Array:
        return np.left_shift(1, x)


class Logarithm(UnaryShape):
    """A whole logarithm to base 2 of extents that are positive."""

    def extent(self, n: int) -> int:
        require(n >= 1, f"the logarithm of {n}, which must be positive", kind="shape")
        return self.bits(n)

    def bits(self, n: int) -> int:
        raise AssertionError(self.name)


class Log2CeilShape(Logarithm, name="tosa.log2_ceil_shape"):
    """The least power of two that is not below, for each extent: its exponent."""

    def bits(self, n: int) -> int:
        return (n - 1).bit_length()

    def reference(self, x: Array) -> Array:
        return np.ceil(np.log2(x)).astype(np.int64)  # exact: extents have fewer bits than a float64


class Log2FloorShape(Logarithm, name="tosa.log2_floor_shape"):
    """The greatest power of two that is not above, for each extent: its exponent."""

    def bits(self, n: int) -> int:
        return n.bit_length() - 1

    def reference(self, x: Array) -> Array:
        return np.floor(np.log2(x)).astype(np.int64)
