"""Functions of integers of two bytes as tables of 513 entries, between which TOSA's TABLE interpolates, as TensorFlow Lite's
kernels do: a table is corrected by half of the error in the middle between two entries."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..formulas.term import Term
from ..formulas.tosa_builder import TosaBuilder
from ..graph.graph import Value
from ..graph.types import Array

STEPS = 512
FRACTION = 7
"""Bits that TABLE's results have below the steps of its entries."""


def interpolated_table(function: Callable[[Array], Array], low: float, high: float, least: float = -1.0, most: float = 1.0
                       ) -> Array:
    """Entries for operands of `low` to `high` and results of `least` to `most`, each over the range of two bytes."""
    step, unit = (high - low) / STEPS, (1 << 16) / (most - least)
    places = low + step * np.arange(STEPS + 1)
    ends, middles = np.round(function(places) * unit), np.round(function(places[:-1] + step / 2) * unit)
    between = np.round((ends[1:] + ends[:-1]) / 2)
    entries = ends.copy()
    entries[:-1] -= np.round((between - middles) / 2)
    return np.clip(entries, -1 << 15, (1 << 15) - 1).astype(np.int16)


def looked_up(e: TosaBuilder, x: Value, table: Array) -> Term:
    """The function of x, an i32."""
    return Term(e, e("table", x, e.constant(table))).apply("arithmetic_right_shift", FRACTION, round=True)
