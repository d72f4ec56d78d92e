"""The elementwise operator of three operands, SELECT. TOSA 1.0, section 2.7."""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine
from ...elements.expression import Expr, cast, is_float, select
from ...elements.tensor import Element, Tensor
from ...graph.operator import Operand
from ...graph.types import I1, Array, TensorType
from .elementwise import BITS, BOOLS, FLOATS, UNSIGNED, Elementwise, Results, broadcast_shape, tensor


class Select(Elementwise, name="tosa.select"):
    """The second operand where the first is true, else the third."""
    results: ClassVar[Results] = BOOLS | BITS | UNSIGNED | FLOATS

    def infer(self, condition: Operand, yes: Operand, no: Operand) -> TensorType:
        found = tensor(condition)
        require(found.element == I1, f"the condition must be i1, it is {found}")
        value = self.result(yes, no)
        return TensorType(broadcast_shape(found.shape, value.shape), value.element)

    def reference(self, condition: Array, yes: Array, no: Array) -> Array:
        return np.asarray(np.where(condition, yes, no))

    def element(self, out: TensorType, condition: Tensor, yes: Tensor, no: Tensor) -> Element:
        def element(*index: Affine) -> Expr:
            chosen = select(condition.broadcast(index), *(as_bits(x.broadcast(index)) for x in (yes, no)))
            return cast(chosen, out.element.storage, bits=True)

        return element


def as_bits(x: Expr) -> Expr:
    """Return a half float as the integer that holds it, because half floats are only moved; anything else unchanged."""
    return cast(x, "int16", bits=True) if is_float(x.dtype) and x.dtype not in ("float32", "float64") else x
