"""RESHAPE_BLOCK_SCALED and ROW_GATHER_BLOCK_SCALED: they move elements of one tensor (BLOCK_SIZE_1), or of values and their
scales, without changing them. `rewrite/decompose.py` rewrites them to RESHAPE and ROW_GATHER. TOSA 1.1 draft.
"""
from __future__ import annotations

from typing import Any

from ....runtime.errors import Problem, require
from ...graph.operator import Op, Operand, attribute
from ...graph.types import Array, BlockScaled, ShapeType, TensorType
from .block_scaled import blocked, scaled, size_of
from .gather import RowGather
from .layout import Reshape
from .operands import extents, ranked, tensor


def check_count(tensors: tuple[Operand, ...], block: int) -> None:
    """Check that there is one tensor without blocks, or two with blocks."""
    require(len(tensors) in (1, 2), f"the list has {len(tensors)} tensors, not one, or values and scales")
    require((len(tensors) == 2) == (block > 1), f"{len(tensors)} tensors do not go with blocks of {block}",
            kind="attribute", help="BLOCK_SIZE_1 for one tensor, BLOCK_SIZE_32 for values and scales")
    for operand in tensors:
        found = tensor(operand, "the values").element
        require(not isinstance(found, BlockScaled), f"{found} has its scales already: a list has them beside its values")


class ReshapeBlockScaled(Op, name="tosa.reshape_block_scaled"):
    """The same elements in row-major order, their scales with them. TOSA 1.1 draft, data layout."""
    block_size: str = attribute("block_size")

    def infer(self, *operands: Operand) -> tuple[TensorType, ...]:
        block = size_of(self.block_size)
        *tensors, shape = operands or (None,)
        require(shape is not None and isinstance(shape.type, ShapeType), f"{self.name} needs a shape as its last operand")
        assert shape is not None
        check_count(tuple(tensors), block)
        numbers = extents(shape, "the shape")
        require(all(n is None or n > 0 for n in numbers), f"{list(numbers)} is not a shape", kind="shape")
        if len(tensors) == 2:
            scaled(tensors[0], tensors[1], block, "the input")
            scales = TensorType(blocked(numbers, block, "the result"), tensors[1].type.element)
        result = Reshape().infer(tensors[0], shape)
        return (result, scales) if len(tensors) == 2 else (result,)

    def reference(self, *arrays: Array) -> Any:
        *tensors, shape = arrays
        values = tuple(map(int, shape.reshape(-1).tolist()))
        if len(tensors) == 1:
            return tensors[0].reshape(values)
        return tensors[0].reshape(values), tensors[1].reshape(*values[:-1], values[-1] // size_of(self.block_size))


class RowGatherBlockScaled(Op, name="tosa.row_gather_block_scaled"):
    """Rows by their number, their scales with them. TOSA 1.1 draft, scatter and gather operators."""
    block_size: str = attribute("block_size")

    def infer(self, *operands: Operand) -> tuple[TensorType, ...]:
        block = size_of(self.block_size)
        if len(operands) not in (3, 4):
            raise Problem(f"{self.name} does not take {len(operands)} operands", kind="type",
                          help="it takes one tensor, or values and scales, then indices and row_count")
        *tensors, indices, row_count = operands
        check_count(tuple(tensors), block)
        blocked(ranked(tensors[0], 3, "the values"), block, "the values")
        if len(tensors) == 2:
            scaled(tensors[0], tensors[1], block, "the values")
        result = tuple(RowGather().infer(values, indices, row_count) for values in tensors)
        return tuple(TensorType(r.shape, tensor(x, "the values").element) for r, x in zip(result, tensors))

    def reference(self, *arrays: Array) -> Any:
        *tensors, indices, row_count = arrays
        return tuple(RowGather().reference(values, indices, row_count) for values in tensors)
