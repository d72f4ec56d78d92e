"""What changes from one report to another."""
from __future__ import annotations

import dataclasses

from tosaic.jit.tools.report import report
from tosaic.jit.tools.report.diff import FigureChange, diff
from tosaic.jit.tools.report.figures import BufferLine

from .subjects import buffer, lowered, made

BEFORE = made(buffer("kept", 16, 0, (0, 3)), buffer("grows", 8, 16, (0, 1)), buffer("goes", 8, 24, (1, 1)))
AFTER = made(buffer("kept", 16, 0, (0, 3)), buffer("grows", 40, 16, (0, 2)), buffer("comes", 4, 56, (2, 2)))


def test_what_grew_came_and_went() -> None:
    found = diff(BEFORE, AFTER)
    assert found.buffers == (FigureChange("grows", 8, 40), FigureChange("goes", 8, None), FigureChange("comes", None, 4))
    totals = {c.name: c.difference for c in found.totals}
    assert totals["arena"] == 60 - 32 and totals["kernels"] == 0
    assert found.pools == (FigureChange("pool workspace", 32, 60),)
    assert found.peak_moved and "kernel 1" in found.peaks[0] and "kernel 2" in found.peaks[1]
    text = str(found)
    assert "buffers added: 1" in text and "buffers removed: 1" in text and "buffers grew: 1" in text and "shrank" not in text
    assert "buffers shrank: 1" in str(diff(AFTER, BEFORE))


def test_nothing_changes_from_a_report_to_itself() -> None:
    facts = report(lowered("corpus/v_lstm"))
    found = diff(facts, facts)
    assert not found.buffers and not found.constants and not found.peak_moved
    assert all(c.difference == 0 for c in (*found.totals, *found.pools))
    assert "peak unmoved" in str(found)


def test_constants_and_pools_that_only_one_has_are_changes() -> None:
    more = dataclasses.replace(AFTER, constant_buffers=(BufferLine("w", "int8", (9,), 9),),
                               pools=(*AFTER.pools, dataclasses.replace(AFTER.pools[0], name="second")))
    found = diff(AFTER, more)
    assert found.constants == (FigureChange("w", None, 9),) and found.pools[-1] == FigureChange("pool second", None, 60)
    assert found.as_dict()["constants"] == [{"name": "w", "before": None, "after": 9}]


def test_long_lists_end_in_a_count() -> None:
    many = made(*(buffer(f"b{i}", 4, 4 * i, (0, 0)) for i in range(50)))
    assert "and 30 more" in str(diff(made(), many))
    assert "nothing is planned" in str(diff(made(), many))
