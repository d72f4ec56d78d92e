"""Sampled grids: of a parametrized test that is marked `@pytest.mark.sampled(n)`, a run takes one case in n, other ones each
day, so that n days take all of them. A test without parameters is a grid of one case. `pytest --whole` takes all cases, as
does a run that names tests (`FILE::TEST`, `-k`).

The day is `TOSAIC_TEST_DAY`, an ordinal; `tests/conftest.py` sets it to today's, for all processes of a run.
"""
from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable

import pytest


def is_of_day(case: int, test: str, n: int, day: int) -> bool:
    """True if a run of this day takes the case with this number. Tests differ in the day that begins with their first case."""
    return (case + zlib.crc32(test.encode()) + day) % n == 0


def parted(items: Iterable[pytest.Item], day: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that a run of this day takes, and those that it leaves to other days."""
    taken, left, numbers = list[pytest.Item](), list[pytest.Item](), Counter[str]()
    for item in items:
        mark = item.get_closest_marker("sampled")
        test = item.nodeid.partition("[")[0]
        (taken if mark is None or is_of_day(numbers[test], test, mark.args[0], day) else left).append(item)
        numbers[test] += 1
    return taken, left
