"""Windows of bytes (depthwise convolution) on machines that multiply vectors of 16 bits and add products to sums of 32 in one
instruction (VWMACC of RISC-V's vectors, SMLAL of 64-bit Arm): both factors have 16 bits until then, so that a tile of outputs
has room for what its rows share.
"""
from __future__ import annotations

from dataclasses import replace

from ...elements.expression import Apply, Cast, Const, Expr, Reduce
from ...target.target import Target
from ..contraction.int8.byte_factors import byte

WIDE, NARROW = "int32", "int16"
"""Of sums, and of factors."""
LANES = 8
"""Where bytes of a vector are as many as factors: sums of a vector are two of the machine's. Known of 64-bit Arm."""


def widening(r: Reduce, target: Target) -> Reduce | None:
    """The sum with such products, if its terms are some of bytes, each less a zero point."""
    match r:
        case Reduce("add", _, Apply("mul", (x, y), "int32")) if target.has_widening_products:
            a, b = narrow(x), narrow(y)
            return replace(r, body=Apply("mul", (a, b), WIDE)) if a and b else None
    return None


def narrow(e: Expr) -> Expr | None:
    """A byte less its zero point, computed in 16 bits; None for any other factor, or zero points that are no bytes."""
    found = byte(e)
    if found is None or not -128 <= found[1] < 256:
        return None
    x, zero_point = found
    made: Expr = Cast(x, NARROW)
    return Cast(Apply("sub", (made, Const(zero_point, NARROW)), NARROW) if zero_point else made, WIDE)


def lanes_of_products(lanes: int, target: Target) -> int:
    """Lanes of the sums, where those of others are `lanes`."""
    return LANES if target.has_lane_products else lanes
