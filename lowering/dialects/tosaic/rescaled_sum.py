"""RESCALED_SUM: the operator that a rescaled sum of two rescaled 8-bit tensors becomes (`rewrite/join_rescales.py`): one linear
form in float32, with factors that are right for every pair of operands.
"""
from __future__ import annotations

import numpy as np

from ...elements.affine import Affine
from ...elements.expression import Expr, apply, cast, clamp
from ...elements.float_functions import ROUNDER, ROUNDER_BITS
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute
from ...graph.types import I8, Array, TensorType
from ..tosa.elementwise import broadcast_shape, tensor


class RescaledSum(Op, name="tosaic.rescaled_sum"):
    """a * first + b * second + addend, rounded to an integer and clipped to i8, the operands' type. Whether the two sums are
    rounded separately from the products (`fma`) is unspecified."""
    first: float = attribute("f32")
    second: float = attribute("f32")
    addend: float = attribute("f32")

    def infer(self, a: Operand, b: Operand) -> TensorType:
        return TensorType(broadcast_shape(tensor(a).shape, tensor(b).shape), I8)

    def reference(self, a: Array, b: Array) -> Array:
        first, second, addend = map(np.float32, (self.first, self.second, self.addend))
        real = a.astype(np.float32) * first + (b.astype(np.float32) * second + addend)
        return np.clip(np.rint(real), I8.minimum, I8.maximum).astype(np.int8)

    def element(self, out: TensorType, a: Tensor, b: Tensor) -> Element:
        def element(*index: Affine) -> Expr:
            x, y = (cast(cast(v.broadcast(index), "int32"), "float32") for v in (a, b))
            total = apply("fma", x, self.first, apply("fma", y, self.second, self.addend))
            number = cast(total + ROUNDER, "int32", bits=True) - ROUNDER_BITS  # it is small: the integer is in the low bits
            return cast(clamp(number, I8.minimum, I8.maximum), "int8")

        return element
