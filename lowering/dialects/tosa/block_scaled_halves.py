"""The two halves of CAST_TO_BLOCK_SCALED, on rows of one block: the scales, which are stored, and the values, which read them.
`rewrite/decompose.py` creates them; no text or file has them.

All computations are exact: a scale is computed from the bits of the greatest magnitude, and a division by a power of two is a
product with its reciprocal, which is a scale, too.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis
from ...elements.expression import Const, Expr, apply, cast, clamp, reduce, select
from ...elements.float_functions import bits
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute
from ...graph.types import F8E4M3, F8E8M0, MXINT8, Array, ElementType, TensorType
from .block_scaling import scale_of, values_of
from .operands import ranked

BLOCK = 32
LIMITS = {"f8E4M3FN": 464.0, "f8E5M2": 61440.0, "f6E2M3FN": 7.75, "f6E3M2FN": 30.0, "f4E2M1FN": 7.0,
          "!tosa.mxint8": 1.9921875}
"""Least magnitude that rounds to more than the largest number of each type (f8E4M3FN: any magnitude above it)."""
INFINITY, FRACTION, BIAS = 0x7F800000, 23, 127
"""Bits of infinity, number of fraction bits, and exponent bias of float32."""


def rows_of_blocks(x: Operand) -> int | None:
    rows, width = ranked(x, 2, "the input")
    require(width == BLOCK, f"a row of {x.type} is no block of {BLOCK}", kind="shape")
    return rows


class BlockScale(Op, name="tosaic.block_scale"):
    """The scale of each row [n, 32] for values of a type: [n, 1]."""
    value: ElementType = attribute("type")

    def infer(self, x: Operand) -> TensorType:
        return TensorType((rows_of_blocks(x), 1), F8E8M0)

    def reference(self, x: Array) -> Array:
        return scale_of(x, self.value)

    def element(self, out: TensorType, x: Tensor) -> Element:
        def element(row: Affine, _: Affine) -> Expr:
            lane = Axis("lane", BLOCK)
            magnitude = bits(cast(x[row, lane], "float32")) & 0x7FFFFFFF
            return scale_for(reduce("max", (lane,), magnitude), self.value)

        return element


def scale_for(largest: Expr, value: ElementType) -> Expr:
    """Return the scale for a greatest magnitude, by its bits, which are ordered as the magnitudes are."""
    limit = np.float32(LIMITS[value.name])
    exponent, fraction = divmod(int(limit.view(np.int32)), 1 << FRACTION)
    up = (fraction + 1) if value == F8E4M3 else fraction  # from here on the exponent is the next one
    code = ((largest - up) >> FRACTION) + (BIAS + 1 - exponent)
    first = int((limit * np.float32(2.0**-BIAS)).view(np.int32))  # below, the least scale is enough; subnormal for mxint8
    code = select(largest < first, Const(0, "int32"), clamp(code, 0, 2 * BIAS))
    code = select(largest < INFINITY, code, Const(255, "int32"))
    return cast(cast(code, "uint8"), F8E8M0.storage, bits=True)


class BlockValues(Op, name="tosaic.block_values"):
    """Each number of rows [n, 32] divided by its row's scale [n, 1], as a value of a type."""
    value: ElementType = attribute("type")

    def infer(self, x: Operand, scale: Operand) -> TensorType:
        rows = rows_of_blocks(x)
        require(scale.type == TensorType((rows, 1), F8E8M0), f"{scale.type} are no scales of {x.type}", kind="shape")
        return TensorType((rows, BLOCK), self.value)

    def reference(self, x: Array, scale: Array) -> Array:
        return values_of(x, scale, self.value)

    def element(self, out: TensorType, x: Tensor, scale: Tensor) -> Element:
        def element(row: Affine, lane: Affine) -> Expr:
            quotient = cast(x[row, lane], "float32") * reciprocal(scale[row, 0])
            return integer(quotient) if self.value == MXINT8 else cast(quotient, self.value.storage)

        return element


def reciprocal(scale: Expr) -> Expr:
    """Return 1 / scale as a float32, exactly; NaN for NaN."""
    code = cast(cast(scale, "uint8", bits=True), "int32")
    return cast(cast(cast(Const(2 * BIAS, "int32") - code, "uint8"), F8E8M0.storage, bits=True), "float32")


def integer(x: Expr) -> Expr:
    """Return the nearest 64th as an int8; 0 for NaN."""
    nearest = apply("rint", x * 64.0)
    whole = select(nearest.equals(nearest), nearest, Const(0.0, "float32"))
    return cast(cast(clamp(whole, -128.0, 127.0), "int32"), "int8")
