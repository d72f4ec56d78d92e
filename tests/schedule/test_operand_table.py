"""A covering part of the table of strategies and operands (`operand_table`), and that no strategy is missing there. The whole
is `python -m tosaic.tests.schedule.operand_table`, or `pytest -m long tests/schedule/test_operand_table.py`.
"""
from __future__ import annotations

import itertools

import pytest
from tosaic.lowering.row_tiling.row_tiling import RowPolicy
from tosaic.lowering.schedule.contraction.contraction_strategies import MICRO_KERNELS, ContractionStrategy
from tosaic.lowering.schedule.strategies import KERNEL_STRATEGIES, STRATEGIES

from ..covering import covering
from .operand_table import KINDS, POLICIES, ROWS, THREADS, impossible, run_cell

FOLDED = {row for row in ROWS if impossible(row, "constant")}
"""Strategies of one operand: where it is a constant, nothing is left to run."""


def test_every_strategy_has_a_row() -> None:
    shown = {row.strategy for row in ROWS.values()}
    assert shown == {*STRATEGIES, *KERNEL_STRATEGIES} - {ContractionStrategy} | set(MICRO_KERNELS)


@pytest.mark.parametrize("row", ROWS)
def test_an_operand_of_the_run_has_the_strategy(row: str) -> None:
    assert run_cell(row, "argument", 1, "never")


def test_cells_that_cannot_be_are_those_of_constants_alone() -> None:
    found = {(row, kind) for row, kind in itertools.product(ROWS, KINDS) if impossible(row, kind)}
    assert found == {(row, "constant") for row in FOLDED}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("row", "kind", "threads", "rows"), covering(18, ROWS, KINDS, THREADS, POLICIES))
def test_an_operand_of_any_kind_is_right(row: str, kind: str, threads: int, rows: RowPolicy | None) -> None:
    if (row, kind) not in {(row, "constant") for row in FOLDED}:
        run_cell(row, kind, threads, rows)


@pytest.mark.long
@pytest.mark.parametrize(("row", "kind"), list(itertools.product(ROWS, KINDS)))
def test_every_operand_of_any_kind_is_right(row: str, kind: str) -> None:
    for threads, rows in itertools.product(THREADS, POLICIES):
        if not impossible(row, kind):
            run_cell(row, kind, threads, rows)
