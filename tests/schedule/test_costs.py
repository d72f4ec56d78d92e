"""The constants of a machine: each has a unit and is read by a cost function, and what is decided follows from them."""
from __future__ import annotations

import dataclasses
import pathlib
import re

import pytest
import tosaic
from tosaic.lowering.loops.cost import cycles
from tosaic.lowering.schedule.contraction.register_tile import choose_tile
from tosaic.lowering.schedule.parallelize import share
from tosaic.lowering.schedule.schedule import schedule
from tosaic.lowering.target.costs import COSTS, Costs, LoadPrices

from ..threads.test_independent_iterations import ROWS, function
from .kernels import V4
from .test_choices import product

SOURCES = [p.read_text() for room in ("lowering", "jit") for p in (pathlib.Path(tosaic.__file__).parent / room).rglob("*.py")
           if p.name != "costs.py"]
UNITS = ("cycles", "bytes", "fraction", "nanoseconds", "rows", "columns", "instructions", "prices", "registers",
         "per_thread", "per_cycle")
FIELDS = [f.name for f in dataclasses.fields(Costs)]


@pytest.mark.parametrize("name", FIELDS)
def test_a_constant_has_a_unit_and_is_read(name: str) -> None:
    assert name.endswith(UNITS)
    assert any(re.search(rf"\.{name}\b", text) for text in SOURCES)


def test_the_cost_of_loops_is_in_the_units_of_the_machine() -> None:
    f = schedule(product(64, 64, 64), V4)
    double = dataclasses.replace(COSTS, **{name: 2 * getattr(COSTS, name) for name in FIELDS if name.endswith("_cycles")})
    assert cycles(f, double) == 2 * cycles(f, COSTS)


def test_dear_barriers_and_tasks_are_not_worth_it() -> None:
    f = function(ROWS)
    cheap = dataclasses.replace(COSTS, task_grain_cycles=20, repeated_fill_cycles=30, barrier_cycles=0)
    assert share(f, 2, cheap) is not None
    assert share(f, 2, dataclasses.replace(cheap, barrier_cycles=1 << 20)) is None
    assert share(f, 2, dataclasses.replace(cheap, task_grain_cycles=1 << 20)) is None


def test_a_register_tile_follows_from_the_prices_of_loads() -> None:
    wide, high = (choose_tile(64, 256, 16, V4, False, prices) for prices in (LoadPrices(5, 0), LoadPrices(0, 5)))
    assert wide.vectors > high.vectors and wide.rows < high.rows
