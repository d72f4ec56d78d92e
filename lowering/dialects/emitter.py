"""The builder that front ends emit TOSA with.

An emitter appends to the innermost of the blocks that are being built, at the position of the operation that is translated.
Operators with constant operands alone are computed at once, by TOSA's own references. Constants are in the outermost block,
once each, so that loops do not repeat them; `definitions` maps values to the operations that define them.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...runtime.errors import Position, Problem
from ..formulas.tosa_builder import TosaBuilder
from ..graph.graph import Block, BlockBuilder, Operation, Value
from ..graph.operator import Op
from ..graph.types import BY_STORAGE, I1, Array, ElementType, ShapeType, TensorType
from .tosa.control_flow import LARGEST_DEPTH
from .tosa.data import Const, ConstShape
from .tosa.layout import Transpose
from .tosaic.assertion import Assert

LARGEST_FOLD = 1 << 20
"""Maximum number of bytes by which a folded result may exceed its operands."""
SMALL = 64
"""Maximum number of elements of constants that are deduplicated."""
MOST_NESTED = 24
"""Maximum depth of nested regions while they are built; some may prove unnecessary."""


class Emitter(TosaBuilder):
    """An emitter of TOSA. `blocks` are the blocks that are being built, outermost first; `position` is that of the operation
    being translated."""

    def __init__(self) -> None:
        self.blocks: list[BlockBuilder] = [BlockBuilder("v")]
        self.position: Position | None = None
        self.records: list[Any] | None = None
        """Records of the operations of the source, if a translation keeps them."""
        self._regions = 0
        self._constants: dict[tuple[bytes, tuple[int, ...], ElementType | None], Value] = {}
        self.definitions: dict[Value, Operation] = {}

    # ---- operators ---------------------------------------------------------------------------------------------------
    def add(self, op: Op, *operands: Value, regions: Sequence[Block] = ()) -> tuple[Value, ...]:
        """Return the results of an operator: constants if its operands are constants."""
        if not regions and not op.variable_effect and operands and all(v.constant is not None for v in operands):
            folded = self.folded(op, operands)
            if folded is not None:
                return (folded,)
        if isinstance(op, Const | ConstShape):
            return self.blocks[0].add(op, position=self.position)
        results = self.blocks[-1].add(op, *operands, regions=regions, position=self.position)
        self.definitions.update(dict.fromkeys(results, self.blocks[-1].operations[-1]))
        return results

    def folded(self, op: Op, operands: Sequence[Value]) -> Value | None:
        """Return the constant result of an operator on constants; None if it would be much larger than they are."""
        types = op.types(operands)
        if len(types) != 1 or not isinstance(types[0], TensorType) or not types[0].is_static:
            return None
        given = sum(v.type.nbytes for v in operands if isinstance(v.type, TensorType))
        if types[0].nbytes > given + LARGEST_FOLD:
            return None
        with np.errstate(all="ignore"):
            found = np.asarray(op.reference(*(v.constant for v in operands)))
        with self.called_as(operands, found.size):
            return self.constant(found.astype(types[0].element.dtype, copy=False).reshape(types[0].dims), types[0].element)

    @contextmanager
    def called_as(self, operands: Sequence[Value], size: int) -> Iterator[None]:
        """Give new operations the name of the one tensor among the operands if they only change its layout: weights keep the
        model's names."""
        tensors = [v for v in operands if isinstance(v.type, TensorType)]
        before, same = self.position, len(tensors) == 1 and tensors[0].tensor.size == size
        if same and before is not None and tensors[0].position is not None:
            self.position = before.called(tensors[0].position.name)
        try:
            yield
        finally:
            self.position = before

    @contextmanager
    def region(self, label: str) -> Iterator[BlockBuilder]:
        """Yield the builder of a new innermost block; its `finish` makes the block. Refuse a block that is nested too deeply
        before more operations are added to it: level 8K allows fewer nested blocks in the result."""
        if len(self.blocks) > MOST_NESTED:
            raise Problem(f"control flow is nested more than {MOST_NESTED} deep, {LARGEST_DEPTH} is the most", kind="model",
                          help="functions that name each other as branches nest without an end")
        self._regions += 1
        builder = BlockBuilder(f"{label}{self._regions}.")
        self.blocks.append(builder)
        try:
            yield builder
        finally:
            self.blocks.pop()

    # ---- constants ---------------------------------------------------------------------------------------------------
    def constant(self, array: Any, element: ElementType | None = None) -> Value:
        """Return a constant of the outermost block; small constants are deduplicated."""
        array = np.asarray(array)
        if array.size > SMALL:
            return super().constant(array, element)
        key = array.tobytes(), array.shape, element or BY_STORAGE.get(array.dtype.name)
        if key not in self._constants:
            self._constants[key] = super().constant(array, element)
        return self._constants[key]

    # ---- layout ------------------------------------------------------------------------------------------------------
    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        """Return a transposition. Two consecutive ones become one, or none: the readers of the value between them alone decide
        how it is stored."""
        made = self.definitions.get(x)
        if made is None or not isinstance(made.op, Transpose):
            return super().transpose(x, perms)
        return self.transpose(made.operands[0], [made.op.perms[p] for p in perms])

    # ---- checks ------------------------------------------------------------------------------------------------------
    def check(self, condition: Value, message: str) -> None:
        """End the run with a message unless the one element of the condition is true."""
        if condition.constant is None or not condition.constant.item():
            self.add(Assert(message=message), condition)

    # ---- booleans ----------------------------------------------------------------------------------------------------
    def is_true(self, x: Value) -> Value:
        """Return a condition as one bool of rank 0: a number is true if it is not zero, a tensor of rank above 0 if it has
        elements."""
        if x.tensor.rank:
            return self.constant(np.array(math.prod(x.tensor.dims) > 0))
        return self.cast(x, I1)


def known(value: Value, what: str) -> Array:
    """Return the data of an operand that must be known at compile time."""
    if value.constant is None or isinstance(value.type, ShapeType):
        raise Problem(f"{what} must be known when compiling", kind="unsupported",
                      help="make it a constant, or compute it from shapes")
    return value.constant


def integers(value: Value, what: str) -> tuple[int, ...]:
    """Return the data of a list of integers (or of one), known at compile time."""
    return tuple(int(n) for n in known(value, what).reshape(-1))


def axes_of(value: Value, rank: int, what: str = "the axes") -> tuple[int, ...]:
    """Return axes that are known at compile time; negative ones count from the last."""
    found = integers(value, what)
    for axis in found:
        if not -rank <= axis < rank:
            raise Problem(f"axis {axis} is not one of a tensor of rank {rank}", kind="shape")
    return tuple(axis % rank for axis in found)
