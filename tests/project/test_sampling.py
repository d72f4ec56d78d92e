"""Sampled grids (`tests/sampling.py`): every case has its day, the processes of a run agree, and a run that names a test takes
all of its cases."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from ..sampling import is_of_day

ROOT = pathlib.Path(__file__).parents[2]
GRID = "tests/memory/test_pools.py"
TEST = "test_of_random_buffers_each_objective_is_best_at_its_own"


@pytest.mark.parametrize("n", [2, 3, 7])
def test_each_case_is_taken_once_in_n_days(n: int) -> None:
    for day in (739_000, 739_001):
        taken = [[case for case in range(20) if is_of_day(case, "a test", n, day + k)] for k in range(n)]
        assert sorted(case for cases in taken for case in cases) == list(range(20))
        assert max(map(len, taken)) - min(map(len, taken)) <= 1


def collected(*arguments: str, day: int = 739_000) -> list[str]:
    """The cases of the grid that pytest collects."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments],
                          capture_output=True, text=True, cwd=ROOT, env={**os.environ, "TOSAIC_TEST_DAY": str(day)})
    return re.findall(rf"{TEST}\[(.*)\]", done.stdout)


def test_a_run_takes_the_cases_of_its_day_and_all_where_it_is_asked_to() -> None:
    whole = collected(GRID, "--whole")
    days = [collected(GRID, day=739_000 + k) for k in range(2)]
    assert sorted(days[0] + days[1]) == sorted(whole) and days[0] and days[1]
    assert collected(f"{GRID}::{TEST}") == whole
