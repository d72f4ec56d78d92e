"""CONST, CONST_SHAPE, IDENTITY and IDENTITYN: sources of data."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.errors import require
from ...elements.expression import Buffer, Load
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import Array, ElementType, ShapeType, TensorType, tensor_type


class Const(Op, name="tosa.const"):
    """A tensor that is known when compiling. `to` is its element type where the dtype does not tell (i4, i48).
    TOSA 1.0, data nodes."""
    values: Array = attribute("dense")
    to: ElementType | None = from_result(default=None)

    def infer(self) -> TensorType:
        if self.to is not None:
            require(self.to.dtype == self.values.dtype, f"{self.values.dtype} does not hold {self.to}")
        return tensor_type(self.values, self.to)

    def reference(self) -> Array:
        return self.values

    def element(self, out: TensorType) -> Element:
        data = np.ascontiguousarray(self.values)
        buffer = Buffer("constant", out.element.storage, out.dims, "constant", data)
        return lambda *index: Load(buffer, index)


class ConstShape(Op, name="tosa.const_shape"):
    """A list of extents. TOSA 1.0, shape operators."""
    values: Array = attribute("dense")

    def infer(self) -> ShapeType:
        require(self.values.ndim == 1 and self.values.dtype.kind in "iu",
                f"a shape is one list of integers, not {self.values.ndim} of {self.values.dtype}", kind="shape")
        return ShapeType(len(self.values))

    def reference(self) -> Array:
        return self.values


class Identity(Op, name="tosa.identity"):
    """The operand. TOSA 1.0, data nodes."""

    def infer(self, x: Operand) -> TensorType:
        require(isinstance(x.type, TensorType), f"the input must be a tensor, not {x.type}")
        result: TensorType = x.type
        return result

    def reference(self, x: Array) -> Array:
        return x

    def element(self, out: TensorType, x: Tensor) -> Element:
        return x.element


class IdentityN(Op, name="tosa.identityn"):
    """Each of the operands: a list of results, such as the slices that a split becomes. Of TOSA before 1.0."""

    def infer(self, *operands: Operand) -> tuple[TensorType, ...]:
        require(len(operands) > 0, "an identityn needs at least one operand")
        for number, x in enumerate(operands):
            require(isinstance(x.type, TensorType), f"operand {number} must be a tensor, not {x.type}")
        return tuple(x.type for x in operands)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def result_elements(self, outs: Sequence[TensorType], *operands: Tensor) -> tuple[Element, ...]:
        return tuple(x.element for x in operands)
