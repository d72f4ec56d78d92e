"""The time axis: every tick in one column, in order; stretches by rows in few columns; never too many."""
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.tools.report.columns import PER_KERNEL, columns
from tosaic.jit.tools.report.figures import StepLine


def steps(kernels: list[int | None], rows: bool) -> list[StepLine]:
    return [StepLine("check") if k is None else StepLine("compute", k, (i, i + 1) if rows else None)
            for i, k in enumerate(kernels)]


KERNELS = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=20)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(KERNELS, st.booleans()), max_size=5), st.integers(1, 40))
def test_columns_are_the_ticks_in_order(parts: list[tuple[list[int | None], bool]], most: int) -> None:
    timeline = [step for kernels, rows in parts for step in steps(kernels, rows)]
    found = columns(timeline, most)
    assert len(found) <= most and len(found.of) == len(timeline)
    assert [t for first, last in found.spans for t in range(first, last + 1)] == list(range(len(timeline)))
    assert all(found.spans[c][0] <= t <= found.spans[c][1] for t, c in enumerate(found.of))
    assert found.highest(range(len(timeline))) == [last for _, last in found.spans]


def test_a_long_stretch_by_rows_takes_few_columns() -> None:
    timeline = [*steps([0, 1], False), *steps([2, 3, 4] * 1000, True), *steps([5], False)]
    found = columns(timeline, 600)
    assert len(found) == 3 + PER_KERNEL * 3
    assert found.stretches == (((2, 13), 3000),)


def test_groups_by_rows_are_separate() -> None:
    timeline = steps([0, 1] * 50 + [2, 3] * 50, True)
    assert [count for _, count in columns(timeline, 600).stretches] == [100, 100]


def test_spans_that_meet_in_a_column_are_one() -> None:
    found = columns(steps([0, 1] * 500, True), 600)
    assert found.cover([(t, t) for t in range(0, 1000, 2)]) == [(0, len(found) - 1)]
    assert found.cover([(0, 0), (999, 999)]) == [(0, 0), (len(found) - 1, len(found) - 1)]
