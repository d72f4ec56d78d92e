"""Emits TOSA: the builder that front doors make their graphs with.

An emitter appends to the innermost of the blocks that are being built, at the position of the operation that is translated.
What has constant operands alone is computed at once, by TOSA's own references. Constants stand in the outermost block, once
each, so that loops do not repeat them; `definitions` says which operation made a value.
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
"""Bytes of a folded result that may be more than its operands have."""
SMALL = 64
"""Elements of constants that are kept once."""
MOST_NESTED = 24
"""Depth of nested regions while they are made; some may turn out to be needless."""


class Emitter(TosaBuilder):
    """`blocks` are those that are being built, outermost first; `position` is that of the operation being translated."""

    def __init__(self) -> None:
        self.blocks: list[BlockBuilder] = [BlockBuilder("v")]
        self.position: Position | None = None
        self.records: list[Any] | None = None
        """What operations of the source became, where a translation keeps that."""
        self._regions = 0
        self._constants: dict[tuple[bytes, tuple[int, ...], ElementType | None], Value] = {}
        self.definitions: dict[Value, Operation] = {}

    # ---- operators ---------------------------------------------------------------------------------------------------
    def add(self, op: Op, *operands: Value, regions: Sequence[Block] = ()) -> tuple[Value, ...]:
        """The results of an operator: constants where its operands are."""
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
        """The constant that an operator of constants is; None where that would be much larger than they are."""
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
        """What is the one tensor among the operands in another layout is called as that is: weights are those of the model."""
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
        """A new innermost block; its builder's `finish` makes the block. One in very many others is refused before more are
        made in it: of those that stay, level 8K allows fewer."""
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
        """A constant of the outermost block; a small one stands there once."""
        array = np.asarray(array)
        if array.size > SMALL:
            return super().constant(array, element)
        key = array.tobytes(), array.shape, element or BY_STORAGE.get(array.dtype.name)
        if key not in self._constants:
            self._constants[key] = super().constant(array, element)
        return self._constants[key]

    # ---- layout ------------------------------------------------------------------------------------------------------
    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        """Two transpositions, one after the other, are one, or none: who reads what is between the two of them alone decides
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
        """What a condition says, as one bool of rank 0: a number if it is not zero, a tensor of rank above 0 if it has
        elements."""
        if x.tensor.rank:
            return self.constant(np.array(math.prod(x.tensor.dims) > 0))
        return self.cast(x, I1)


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
