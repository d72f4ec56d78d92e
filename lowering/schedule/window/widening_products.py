"""Windows of bytes (depthwise convolution) on machines that multiply vectors of 16 bits and add the products to 32-bit sums in
one instruction (VWMACC of RISC-V's vectors, SMLAL of 64-bit Arm). Both factors keep 16 bits until then, so that a tile of
outputs has registers for the values that its rows share.
"""
from __future__ import annotations

from dataclasses import replace

from ...elements.expression import Apply, Cast, Const, Expr, Reduce
from ...target.target import Target
from ..contraction.int8.byte_factors import byte

WIDE, NARROW = "int32", "int16"
"""Dtypes of the sums and of the factors."""
LANES = 8
"""Lanes of sums where a vector has as many bytes as factors: the sums take two machine vectors. Known for 64-bit Arm."""


def widening(r: Reduce, target: Target) -> Reduce | None:
    """Return the sum with widening products, if its terms are products of bytes, each less a zero point; else None."""
    match r:
        case Reduce("add", _, Apply("mul", (x, y), "int32")) if target.has_widening_products:
            a, b = narrow(x), narrow(y)
            return replace(r, body=Apply("mul", (a, b), WIDE)) if a and b else None
    return None


def narrow(e: Expr) -> Expr | None:
    """Return a byte less its zero point, computed in 16 bits; None for any other factor, or a zero point that is no byte."""
    found = byte(e)
    if found is None or not -128 <= found[1] < 256:
        return None
    x, zero_point = found
    made: Expr = Cast(x, NARROW)
    return Cast(Apply("sub", (made, Const(zero_point, NARROW)), NARROW) if zero_point else made, WIDE)


def lanes_of_products(lanes: int, target: Target) -> int:
    """Return the lanes of the sums of widening products, where other sums have `lanes`."""
    return LANES if target.has_lane_products else lanes
