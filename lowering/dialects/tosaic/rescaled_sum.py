"""RESCALED_SUM: what the sum of two rescaled tensors of 8 bits, rescaled, becomes (`rewrite/join_rescales.py`): one linear form
in float32, with factors for which it has been found right for every pair of operands.
"""
from __future__ import annotations

import numpy as np

from ...elements.affine import Affine
from ...elements.expression import Expr, apply, cast, clamp
from ...elements.functions import ROUNDER, ROUNDER_BITS
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import Array, ElementType, TensorType
from ..tosa.elementwise import broadcast_shape, tensor
from ..tosa.rescale import as_integers, limits, zero_extended


class RescaledSum(Op, name="tosaic.rescaled_sum"):
    """a * first + b * second + addend, rounded to an integer and clipped to the type of the result, of 8 bits. Whether the two
    sums round once or twice (`fma`) is left open."""
    first: float = attribute("f32")
    second: float = attribute("f32")
    addend: float = attribute("f32")
    first_unsigned: bool = attribute("bool", default=False)
    second_unsigned: bool = attribute("bool", default=False)
    output_unsigned: bool = attribute("bool", default=False)
    to: ElementType | None = from_result()

    def infer(self, a: Operand, b: Operand) -> TensorType:
        assert self.to is not None
        return TensorType(broadcast_shape(tensor(a).shape, tensor(b).shape), self.to)

    def reference(self, a: Array, b: Array) -> Array:
        assert self.to is not None
        x, y = (as_integers(v, unsigned).astype(np.float32) for v, unsigned in ((a, self.first_unsigned),
                                                                               (b, self.second_unsigned)))
        real = x * np.float32(self.first) + (y * np.float32(self.second) + np.float32(self.addend))
        return np.clip(np.rint(real), *limits(self.to, self.output_unsigned)).astype(np.int64).astype(self.to.dtype)

    def element(self, out: TensorType, a: Tensor, b: Tensor) -> Element:
        low, high = limits(out.element, self.output_unsigned)
        operands = (a, self.first_unsigned), (b, self.second_unsigned)

        def element(*index: Affine) -> Expr:
            x, y = (real(v.broadcast(index), unsigned) for v, unsigned in operands)
            total = apply("fma", x, self.first, apply("fma", y, self.second, self.addend))
            number = cast(total + ROUNDER, "int32", bits=True) - ROUNDER_BITS  # it is small: the integer is in the low bits
            return cast(clamp(number, low, high), out.element.storage)

        return element


def real(x: Expr, unsigned: bool) -> Expr:
    """An integer of 8 bits in float32."""
    return cast(zero_extended(x) if unsigned else cast(x, "int32"), "float32")
