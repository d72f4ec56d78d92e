"""The formulas of TensorFlow Lite's kernels: `write_kernels` lowers operators by them where TOSA's own operators, or a
converter's choice of them, give other results."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..formulas.division import floored_float, floored_remainder
from ..formulas.rounding import clamp, nearest_away
from ..formulas.term import Term, erf, select
from ..graph.types import I8, I32, UI8


def floored_division(a: Term, b: Term) -> Term:
    return floored_float(a, b)[0]


def remainder(a: Term, b: Term) -> Term:
    """a modulo b, with the sign of b."""
    return floored_remainder(a, b) if a.element == I32 else floored_float(a, b)[1]


def greater(a: Term, b: Term) -> Term:
    """a > b ? a : b, which is the second operand if one is NaN or both are equal."""
    return select(a > b, a, b)


def less(a: Term, b: Term) -> Term:
    """a < b ? a : b"""
    return select(a < b, a, b)


def gelu(x: Term) -> Term:
    """x (1 + erf(x / sqrt 2)) / 2"""
    return x * 0.5 * (erf(x * float(np.sqrt(0.5))) + 1)


def quantized(x: Term, scale: np.float32, zero_point: int, element: Any) -> Term:
    """clamp(round(x / scale) + zero point): halves are rounded away from zero."""
    rounded = nearest_away(x * float(np.float32(1) / scale))
    least, most = (float(bound - zero_point) for bound in (element.minimum, element.maximum))
    integer = x.of(x.builder("cast", clamp(rounded, least, most).value, to=I32))
    stored, offset = (I8, 128) if element == UI8 else (element, 0)
    found = integer + (zero_point - offset)
    narrow = x.of(x.builder("cast", found.value, to=stored))
    if element != UI8:
        return narrow
    return x.of(x.builder.rescaled(narrow.value, UI8, output_unsigned=True, input_zero=-128))
