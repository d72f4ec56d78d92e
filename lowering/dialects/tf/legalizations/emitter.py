"""Emits TOSA: what legalizations build their results with.

An emitter appends to the innermost of the blocks that are being built, at the position of the operation that is translated.
What has constant operands alone is computed at once, by TOSA's own references. Constants stand in the outermost block, once
each, so that loops do not repeat them; `definitions` says which operation made a value. `emitter("add", a, b)` is one
operator; the methods are what several legalizations need: operands brought to one rank, narrow integers through i32,
conversions as TensorFlow has them.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .....runtime.errors import Position, Problem
from ....graph.graph import Block, BlockBuilder, Operation, Value
from ....graph.operator import OPERATORS, Op
from ....graph.types import BY_STORAGE, F32, I1, I16, I32, UI8, Array, ElementType, ShapeType, TensorType
from ...tosa.control_flow import LARGEST_DEPTH
from ...tosa.data import Const, ConstShape
from ...tosaic.assertion import Assert

LARGEST_FOLD = 1 << 20
"""Bytes of a folded result that may be more than its operands have."""
SMALL = 64
"""Elements of constants that are kept once."""
MOST_NESTED = 24
"""Depth of nested regions while they are made; some may turn out to be needless."""


class Emitter:
    """`blocks` are those that are being built, outermost first; `position` is that of the operation being translated."""

    def __init__(self) -> None:
        self.blocks: list[BlockBuilder] = [BlockBuilder("v")]
        self.position: Position | None = None
        self._regions = 0
        self._constants: dict[tuple[bytes, tuple[int, ...], ElementType], Value] = {}
        self.definitions: dict[Value, Operation] = {}

    # ---- operators ---------------------------------------------------------------------------------------------------
    def __call__(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """The one result of operator `tosa.<name>`."""
        return self.add(OPERATORS[f"tosa.{name}"](**attributes), *operands)[0]

    def add(self, op: Op, *operands: Value, regions: Sequence[Block] = ()) -> tuple[Value, ...]:
        """The results of an operator: constants where its operands are."""
        if not regions and not op.variable_effect and operands and all(v.constant is not None for v in operands):
            folded = self.folded(op, operands)
            if folded is not None:
                return (folded,)
        results = self.blocks[-1].add(op, *operands, regions=regions, position=self.position)
        self.definitions.update(dict.fromkeys(results, self.blocks[-1].operations[-1]))
        return results

    def folded(self, op: Op, operands: Sequence[Value]) -> Value | None:
        """The constant that an operator of constants is; None where that would be much larger than they are."""
        types = op.types(operands)
        if len(types) != 1 or not isinstance(types[0], TensorType) or not types[0].is_static:
            return None
        given = sum(v.type.nbytes for v in operands if isinstance(v.type, TensorType))
        if types[0].nbytes > given + LARGEST_FOLD:
            return None
        with np.errstate(all="ignore"):
            found = np.asarray(op.reference(*(v.constant for v in operands)))
        return self.constant(found.astype(types[0].element.dtype, copy=False).reshape(types[0].dims), types[0].element)

    @contextmanager
    def region(self, label: str) -> Iterator[BlockBuilder]:
        """A new innermost block; its builder's `finish` makes the block. One in very many others is refused before more are
        made in it: of those that stay, level 8K allows fewer."""
        if len(self.blocks) > MOST_NESTED:
            raise Problem(f"control flow is nested more than {MOST_NESTED} deep, {LARGEST_DEPTH} is the most", kind="model")
        self._regions += 1
        builder = BlockBuilder(f"{label}{self._regions}.")
        self.blocks.append(builder)
        try:
            yield builder
        finally:
            self.blocks.pop()

    # ---- constants ---------------------------------------------------------------------------------------------------
    def constant(self, array: Any, element: ElementType | None = None) -> Value:
        """A constant; `element` where the array's dtype does not say which."""
        array = np.asarray(array)
        found = element or BY_STORAGE.get(array.dtype.name)
        if found is None:
            raise Problem(f"a tensor of {array.dtype} has no place in TOSA", kind="unsupported")
        if array.size > SMALL:
            return self._constant(array, found)
        key = array.tobytes(), array.shape, found
        if key not in self._constants:
            self._constants[key] = self._constant(array, found)
        return self._constants[key]

    def _constant(self, array: Array, element: ElementType) -> Value:
        if array.flags.writeable or not array.flags.c_contiguous:
            array = np.array(array, order="C")
            array.setflags(write=False)
        to = None if BY_STORAGE.get(array.dtype.name) == element else element
        return self.blocks[0].add(Const(values=array, to=to), position=self.position)[0]

    def splat(self, value: Any, like: Value) -> Value:
        """One number, of the element type and the rank of another tensor, all extents 1."""
        element = like.tensor.element
        return self.constant(np.full((1,) * like.tensor.rank, value, element.dtype), element)

    def shape(self, dims: Sequence[int]) -> Value:
        """A list of extents."""
        key = np.asarray(dims, np.int64).reshape(len(dims))
        key.setflags(write=False)
        return self.blocks[0].add(ConstShape(values=key), position=self.position)[0]

    def zeros(self, type: TensorType) -> Value:
        """Zeros; many are repeated where they are needed, not kept."""
        if type.nbytes > LARGEST_FOLD:
            return self.broadcast_to(self.constant(np.zeros((), type.element.dtype), type.element), type.dims)
        return self.constant(np.zeros(type.dims, type.element.dtype), type.element)

    # ---- layout; a tensor without elements is a constant, because TOSA has none ------------------------------------------
    def reshape(self, x: Value, dims: Sequence[int]) -> Value:
        if 0 in dims:
            return self.zeros(TensorType(tuple(dims), x.tensor.element))
        return x if x.tensor.dims == tuple(dims) else self("reshape", x, self.shape(dims))

    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        """Axis perms[i] of x becomes axis i."""
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
        """x repeated; ranks are made equal from the left."""
        x = self.with_rank(x, len(dims))
        if 0 in dims:
            return self.reshape(x, dims)
        times = tuple(n // max(m, 1) for n, m in zip(dims, x.tensor.dims))
        return x if set(times) <= {1} else self("tile", x, self.shape(times))

    def with_rank(self, x: Value, rank: int) -> Value:
        """x with axes of extent 1 in front."""
        return self.reshape(x, (1,) * (rank - x.tensor.rank) + x.tensor.dims)

    def same_rank(self, *operands: Value) -> tuple[Value, ...]:
        """The operands, each with axes of extent 1 in front until they have one rank: how TensorFlow broadcasts."""
        rank = max(v.tensor.rank for v in operands)
        return tuple(self.with_rank(v, rank) for v in operands)

    # ---- arithmetic --------------------------------------------------------------------------------------------------
    def arithmetic(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """An elementwise operator with TensorFlow's broadcasting; narrow integers go through i32 and come back, which wraps as
        TensorFlow does."""
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
        x, y = self.same_rank(a, b)
        element = x.tensor.element
        if is_narrow(element):
            return self.cast(self.product(self.cast(x, I32), self.cast(y, I32)), element)
        return self("mul", x, y, self.constant(np.zeros(1, np.int8)))

    def quotient(self, a: Value, b: Value) -> Value:
        """Of floats: a times the reciprocal of b."""
        return self.product(a, self("reciprocal", b))

    def square_root(self, x: Value) -> Value:
        """The reciprocal of the reciprocal square root: right at 0 and infinity, too."""
        return self("reciprocal", self("rsqrt", x))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where the condition is true, else b."""
        given = self.same_rank(condition, a, b)
        element = given[1].tensor.element
        if is_narrow(element) and element.kind == "unsigned":
            return self.cast(self("select", given[0], *(self.cast(v, I32) for v in given[1:])), element)
        return self("select", *given)

    def cast(self, x: Value, element: ElementType) -> Value:
        """x converted as TensorFlow does it: floats become integers by dropping the fraction, anything but 0 is true."""
        own = x.tensor.element
        if own == element:
            return x
        if own == UI8:
            return self.cast(self.rescaled(x, I16, input_unsigned=True), element)
        if element == UI8:
            low = self("bitwise_and", *self.same_rank(self.cast(x, I32), self.constant(np.int32(255))))
            return self.rescaled(self.cast(low, I16), UI8, output_unsigned=True)
        if element == I1:
            return self("logical_not", self.arithmetic("equal", x, self.splat(0, x)))
        if own == I1 and element.is_float:
            return self.cast(self("cast", x, to=I32), element)
        if own.is_float and element.is_integer:
            x = self.truncated(x)
        if own.is_float and element.is_float and F32 not in (own, element) and "f64" not in (own.name, element.name):
            x = self("cast", x, to=F32)
        return self("cast", x, to=element)

    def truncated(self, x: Value) -> Value:
        """Rounded toward zero."""
        return self("select", self("greater", self.splat(0, x), x), self("ceil", x), self("floor", x))

    def rescaled(self, x: Value, element: ElementType, input_unsigned: bool = False, output_unsigned: bool = False) -> Value:
        """The same integers in another type."""
        one, shift = self.constant(np.full(1, 1 << 30, np.int32)), self.constant(np.full(1, 30, np.int8))
        zero = [self.constant(np.zeros(1, e.dtype), e) for e in (x.tensor.element, element)]
        return self("rescale", x, one, shift, *zero, to=element, scale32=True, rounding_mode="SINGLE_ROUND", per_channel=False,
                    input_unsigned=input_unsigned, output_unsigned=output_unsigned)

    # ---- checks ------------------------------------------------------------------------------------------------------
    def check(self, condition: Value, message: str) -> None:
        """End the run with a message unless the one element of the condition is true."""
        if condition.constant is None or not condition.constant.item():
            self.add(Assert(message=message), condition)

    # ---- booleans ----------------------------------------------------------------------------------------------------
    def is_true(self, x: Value) -> Value:
        """What a condition says, as one bool of rank 0: a number if it is not zero, a tensor of rank above 0 if it has
        elements."""
        if x.tensor.rank:
            return self.constant(np.array(math.prod(x.tensor.dims) > 0))
        return self.cast(x, I1)


def is_narrow(element: ElementType) -> bool:
    """Whether TOSA has no arithmetic of these integers."""
    return element.is_integer and element.bits < 32


def known(value: Value, what: str) -> Array:
    """The data of an operand that has to be known when compiling."""
    if value.constant is None or isinstance(value.type, ShapeType):
        raise Problem(f"{what} must be known when compiling", kind="unsupported",
                      help="make it a constant, or compute it from shapes")
    return value.constant


def integers(value: Value, what: str) -> tuple[int, ...]:
    """The data of a list of integers (or of one), known when compiling."""
    return tuple(int(n) for n in known(value, what).reshape(-1))


def axes_of(value: Value, rank: int, what: str = "the axes") -> tuple[int, ...]:
    """Axes, known when compiling; negative ones count from the last."""
    found = integers(value, what)
    for axis in found:
        if not -rank <= axis < rank:
            raise Problem(f"axis {axis} is not one of a tensor of rank {rank}", kind="shape")
    return tuple(axis % rank for axis in found)
