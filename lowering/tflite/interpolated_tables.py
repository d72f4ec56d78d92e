"""Functions of integers of two bytes as tables of 513 entries, between which TOSA's TABLE interpolates, as TensorFlow Lite's
kernels do: half of the error in the middle between two entries corrects the table."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..formulas.term import Term
from ..formulas.tosa_builder import TosaBuilder
from ..graph.graph import Value
from ..graph.types import Array

STEPS = 512
LEAST, MOST = -1 << 15, (1 << 15) - 1
FRACTION = 7
"""Number of fraction bits of TABLE's results below the steps of its entries."""


def interpolated_table(function: Callable[[Array], Array], scale: np.floating[Any] | float, zero_point: int,
                       result_scale: np.floating[Any] | float) -> Array:
    """Return the entries for operands and results over the int16 range, in the float type of the scales, rounded as the kernels
    round."""
    real = np.result_type(scale).type if isinstance(scale, np.floating) else np.float64
    least, most = (real(scale * real(n - zero_point)) for n in (LEAST, MOST))
    low, high = (real(result_scale) * real(n) for n in (LEAST, MOST))
    step, unit = real((most - least) / real(STEPS)), real(real(1 << 16) / (high - low))
    places = least + np.arange(STEPS + 1).astype(real) * step
    with np.errstate(all="ignore"):
        ends, middles = (called(function, at) * unit for at in (places, places[:-1] + step / real(2)))
        last = away(called(function, np.array([most])) * unit)
        between = away((ends[1:] + away(ends[:-1])) / real(2))
        entries = np.concatenate([away(ends[:-1]) - away((between - away(middles)) / real(2)), last])
    return np.nan_to_num(np.clip(entries, LEAST, MOST), nan=0).astype(np.int16)


def called(function: Callable[[Array], Array], x: Array) -> Array:
    """Return the function of x, rounded once."""
    return function(x.astype(np.float64)).astype(x.dtype)


def away(x: Array) -> Array:
    """Return the nearest integers, halves away from zero."""
    return np.trunc(x) + np.sign(x) * (np.abs(x - np.trunc(x)) >= 0.5)


def looked_up(e: TosaBuilder, x: Value, table: Array) -> Term:
    """Return the function of x, an i32."""
    return Term(e, e("table", x, e.constant(table))).apply("arithmetic_right_shift", FRACTION, round=True)
