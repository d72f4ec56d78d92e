"""Operands as an operator's `element` sees them: `x[i, j]` is the expression of that element, stored or not.

Fusion hands an operator the same `Tensor` whether its operand lies in a buffer or is an expression that was never stored.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...runtime.records import dataclass
from ..graph.types import NUMPY_NAMES, Array, TensorType
from .affine import Affine, Axis, Computed, Range
from .expression import Buffer, Const, Expr, Load, cast, guard

Element = Callable[..., Expr]
Index = Affine | Axis | Computed | int


class NotAffine(Exception):
    """An index cannot be written as an affine expression: the operand must be stored and read as a flat view."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An operand. `constant` is its data where it is known when compiling."""
    type: TensorType
    element: Element
    constant: Array | None = None

    def __getitem__(self, index: tuple[Index, ...]) -> Expr:
        return self.element(*map(Affine.of, index))

    def within(self, *index: Index, outside: Expr | float | int = 0) -> Expr:
        """x[index] where the index is inside x, `outside` elsewhere."""
        where = [Range(Affine.of(i), 0, n) for i, n in zip(index, self.type.dims)]
        return guard(where, self[index], outside)

    def broadcast(self, index: tuple[Affine, ...]) -> Expr:
        """x at an index of the broadcast shape: an axis of extent 1 stays at 0."""
        return self[tuple(0 if n == 1 else i for i, n in zip(index, self.type.dims))]

    def scalar(self, position: int = 0) -> Expr:
        """Element `position` of a rank-0 or rank-1 operand (a zero point), a Const where it is known."""
        if self.constant is not None:
            return Const(self.constant.reshape(-1)[position].item(), self.type.element.storage)
        return self[(position,) if self.type.rank else ()]

    @property
    def integers(self) -> tuple[int, ...]:
        """The data of an operand that must be known when compiling."""
        assert self.constant is not None
        return tuple(int(x) for x in self.constant.reshape(-1))


def stored(type: TensorType, buffer: Buffer) -> Tensor:
    """A tensor that lies in a buffer of its own shape; a constant of one element is a number."""
    if buffer.data is not None and buffer.size == 1 and buffer.dtype in NUMPY_NAMES - {"float16"}:
        number = Const(buffer.data.reshape(-1)[0].item(), buffer.dtype)
        return Tensor(type, lambda *index: number, buffer.data)
    return Tensor(type, lambda *index: Load(buffer, index), buffer.data)


def viewed(type: TensorType, buffer: Buffer) -> Tensor:
    """A tensor that lies in a buffer of another shape, with the same elements in row-major order."""
    def element(*index: Affine) -> Expr:
        flat = Affine()
        for i, stride in zip(index, type.strides):
            flat = flat + i * stride
        return Load(buffer, (flat,))

    return Tensor(type, element, None if buffer.data is None else buffer.data.reshape(type.dims))


class ConstantTable:
    """A constant vector that an operator derives from its attributes and constant operands: `table(i)` is entry i."""

    def __init__(self, values: Array, dtype: str) -> None:
        data = np.ascontiguousarray(np.asarray(values).astype(dtype).reshape(-1))
        data.flags.writeable = False
        self.buffer = Buffer("table", dtype, data.shape, "constant", data)
        self.number = Const(data[0].item(), dtype) if (data == data[0]).all() else None

    def __call__(self, index: Index) -> Expr:
        return self.number or Load(self.buffer, (Affine.of(index),))


def gathered(value: Expr, extent: int) -> Affine:
    """An index that comes from data, clamped into range(extent)."""
    return Affine.of(Computed(cast(value, "int32"), extent))
