"""The builder of TOSA operators: `builder("add", a, b)` appends one operator, the methods are shared by all formulas.

TOSA requires operands of one rank, adds and compares only i32 and floats, and has no quotient. The builder makes ranks equal
from the left, computes narrow integers in i32 and converts them back, which wraps as NumPy and TensorFlow do, and converts as
these do. A front door's subclass decides where operations go: `PlacedBuilder` is the plain one, the emitter of TensorFlow's
legalizations folds constants, too.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime.errors import Position, Problem
from ..graph.graph import BlockBuilder, Value
from ..graph.operator import OPERATORS, Op
from ..graph.types import BY_STORAGE, F32, I1, I8, I16, I32, I64, UI8, ElementType, TensorType

LARGEST_ZEROS = 1 << 20
"""Maximum bytes of a constant of zeros; more are broadcast where they are needed, so that a model does not keep them."""


class TosaBuilder(ABC):
    """A builder that appends operations to a graph."""

    # ---- operators ---------------------------------------------------------------------------------------------------
    @abstractmethod
    def add(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        """Append an operation; return its results."""

    def __call__(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """Append operator `tosa.<name>`; return its one result."""
        return self.add(OPERATORS[f"tosa.{name}"](**attributes), *operands)[0]

    # ---- constants ---------------------------------------------------------------------------------------------------
    def constant(self, array: Any, element: ElementType | None = None) -> Value:
        """Return a constant; `element` is its type if the array's dtype does not determine it."""
        array = np.asarray(array)
        own = BY_STORAGE.get(array.dtype.name)
        if own is None and element is None:
            raise Problem(f"a tensor of {array.dtype} has no place in TOSA", kind="unsupported")
        if array.flags.writeable or not array.flags.c_contiguous:
            array = np.array(array, order="C")
            array.setflags(write=False)
        return self("const", values=array, to=None if element in (None, own) else element)

    def splat(self, value: Any, like: Value) -> Value:
        """Return one number, of the element type and the rank of another tensor, all extents 1."""
        element = like.tensor.element
        return self.constant(np.full((1,) * like.tensor.rank, value, element.dtype), element)

    def zero_point(self, element: ElementType) -> Value:
        """Return the zero point 0, as operators take it."""
        return self.constant(np.zeros(1, element.dtype), element)

    def shape(self, dims: Sequence[int]) -> Value:
        """Return a list of extents."""
        values = np.array(dims, np.int64).reshape(len(dims))
        values.setflags(write=False)
        return self("const_shape", values=values)

    def zeros(self, type: TensorType) -> Value:
        """Return zeros; many are broadcast where they are needed, not kept."""
        if type.nbytes > LARGEST_ZEROS:
            return self.broadcast_to(self.constant(np.zeros((), type.element.dtype), type.element), type.dims)
        return self.constant(np.zeros(type.dims, type.element.dtype), type.element)

    # ---- layout; a tensor without elements is a constant, because TOSA has none ------------------------------------------
    def reshape(self, x: Value, dims: Sequence[int | None]) -> Value:
        """Return x in another shape; one of the extents may be None, and follows from the others."""
        if 0 in dims:
            return self.zeros(TensorType(tuple(dims), x.tensor.element))
        if x.tensor.shape == tuple(dims):
            return x
        return self("reshape", x, self.shape([-1 if n is None else n for n in dims]))

    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        """Return x with its axis perms[i] as axis i."""
        if not x.tensor.size:
            return self.reshape(x, [x.tensor.dims[p] for p in perms])
        return x if tuple(perms) == tuple(range(x.tensor.rank)) else self("transpose", x, perms=tuple(perms))

    def slice(self, x: Value, start: Sequence[int], size: Sequence[int]) -> Value:
        if 0 in size:
            return self.reshape(x, size)
        return x if tuple(size) == x.tensor.dims else self("slice", x, self.shape(start), self.shape(size))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        parts = [part for part in parts if part.tensor.dims[axis]] or parts[:1]
        if not parts[0].tensor.size:
            dims = list(parts[0].tensor.dims)
            return self.reshape(parts[0], [*dims[:axis], sum(part.tensor.dims[axis] for part in parts), *dims[axis + 1:]])
        return parts[0] if len(parts) == 1 else self("concat", *parts, axis=axis)

    def broadcast_to(self, x: Value, dims: Sequence[int]) -> Value:
        """Return x repeated; ranks are made equal from the left."""
        x = self.with_rank(x, len(dims))
        if 0 in dims:
            return self.reshape(x, dims)
        return self.tile(x, [n // max(m, 1) for n, m in zip(dims, x.tensor.dims)])

    def tile(self, x: Value, times: Sequence[int]) -> Value:
        """Return x repeated along each axis."""
        return x if set(times) <= {1} else self("tile", x, self.shape(times))

    def with_rank(self, x: Value, rank: int) -> Value:
        """Return x with axes of extent 1 in front."""
        return x if x.tensor.rank == rank else self.reshape(x, (1,) * (rank - x.tensor.rank) + x.tensor.dims)

    def same_rank(self, *operands: Value) -> tuple[Value, ...]:
        """Return the operands, each with axes of extent 1 in front until all have one rank, as NumPy and TensorFlow
        broadcast."""
        rank = max(v.tensor.rank for v in operands)
        return tuple(self.with_rank(v, rank) for v in operands)

    # ---- arithmetic --------------------------------------------------------------------------------------------------
    def arithmetic(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """Return an elementwise operator of i32 and floats; narrow integers are computed in i32 and converted back, which
        wraps."""
        given = self.same_rank(*operands)
        element = given[0].tensor.element
        if not is_narrow(element):
            return self(name, *given, **attributes)
        found = self(name, *(self.cast(v, I32) for v in given), **attributes)
        return self.cast(found, element) if found.tensor.element == I32 else found

    def sum(self, a: Value, b: Value) -> Value:
        return self.arithmetic("add", a, b)

    def difference(self, a: Value, b: Value) -> Value:
        return self.arithmetic("sub", a, b)

    def product(self, a: Value, b: Value) -> Value:
        """Return a * b; of i8 and i16, MUL gives all bits, of which the lower stay."""
        x, y = self.same_rank(a, b)
        element = x.tensor.element
        if is_narrow(element) and element not in (I8, I16):
            x, y = self.cast(x, I32), self.cast(y, I32)
        return self.cast(self("mul", x, y, self.constant(np.zeros(1, np.int8))), element)

    def quotient(self, a: Value, b: Value) -> Value:
        """Return a / b of floats: a times the reciprocal of b, which is one ulp off; `division.divided` is exact."""
        return self.product(a, self("reciprocal", b))

    def negative(self, x: Value) -> Value:
        """Return -x; for integers it wraps."""
        element = x.tensor.element
        if is_narrow(element) or element.kind == "unsigned":
            return self.difference(self.splat(0, x), x)
        return self("negate", x, self.zero_point(element), self.zero_point(element))

    def square_root(self, x: Value) -> Value:
        """Return the reciprocal of the reciprocal square root: right at 0 and infinity, too."""
        return self("reciprocal", self("rsqrt", x))

    def bits(self, name: str, *operands: Value, **attributes: bool) -> Value:
        """Return an operator on the bits of integers; unsigned numbers are computed as signed ones of more bits, or of 64."""
        given = self.same_rank(*operands)
        element = given[0].tensor.element
        if element.kind != "unsigned":
            return self(name, *given, **attributes)
        wide = I32 if is_narrow(element) else I64
        return self.cast(self(name, *(self.cast(x, wide) for x in given), **attributes), element)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a where the condition is true, else b; floats of 8 bits are selected as wider ones, which hold them all."""
        element = a.tensor.element
        if element.is_float and element.bits == 8:
            return self.cast(self.select(condition, self.cast(a, F32), self.cast(b, F32)), element)
        return self("select", *self.same_rank(condition, a, b))

    # ---- conversions -------------------------------------------------------------------------------------------------
    def cast(self, x: Value, element: ElementType) -> Value:
        """Return x converted as in NumPy and TensorFlow: floats become integers by dropping the fraction, numbers but 0
        true."""
        own = x.tensor.element
        if own == element:
            return x
        if own == UI8:
            return self.cast(self.rescaled(x, I16, input_unsigned=True), element)
        if element == UI8:
            wide = self.cast(x, I32)
            low = self("bitwise_and", wide, self.splat(255, wide))
            return self.rescaled(self.cast(low, I16), UI8, output_unsigned=True)
        if own.is_float and element == I1:
            return self("logical_not", self("equal", x, self.splat(0, x)))
        if own == I1 and element.is_float:
            return self.cast(self("cast", x, to=I32), element)
        if own.is_float and element.is_integer:
            x = self.truncated(x)
        if own.is_float and element.is_float and F32 not in (own, element) and "f64" not in (own.name, element.name):
            x = self("cast", x, to=F32)
        return self("cast", x, to=element)

    def truncated(self, x: Value) -> Value:
        """Return x rounded toward zero."""
        return self("select", self("greater", self.splat(0, x), x), self("ceil", x), self("floor", x))

    def rescaled(self, x: Value, element: ElementType, input_unsigned: bool = False, output_unsigned: bool = False,
                 input_zero: int = 0, output_zero: int = 0) -> Value:
        """Return the same integers in another type, less `input_zero` and plus `output_zero`."""
        one, shift = self.constant(np.full(1, 1 << 30, np.int32)), self.constant(np.full(1, 30, np.int8))
        zeros = [self.constant(np.full(1, zero, t.dtype), t) for zero, t in
                 ((input_zero, x.tensor.element), (output_zero, element))]
        return self("rescale", x, one, shift, *zeros, to=element, scale32=True,
                    rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=input_unsigned,
                    output_unsigned=output_unsigned)


class PlacedBuilder(TosaBuilder):
    """A builder that appends to a block, all operations at one position of the source."""

    def __init__(self, block: BlockBuilder, position: Position | None = None) -> None:
        self.block, self.position = block, position

    def add(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        return self.block.add(op, *operands, position=self.position)


def is_narrow(element: ElementType) -> bool:
    """True if TOSA has no arithmetic for these integers."""
    return element.is_integer and element.bits < 32
