"""The report as text: golden for fixed targets, a picture in letters, figures of every pool."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from tosaic.jit.tools.report import report
from tosaic.jit.tools.report.terminal import HEIGHT, WIDTH, picture
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.lowering.memory.planner import Memory

from .subjects import buffer, by_rows, in_pools, lowered, made

POOLS = Memory(pools=(PoolInfo("dtcm", 3000), PoolInfo("sram", 1 << 16)), workspace_io=True, algorithm="greedy_by_size")


@pytest.mark.parametrize("name", ["quantized", "pools"])
def test_a_report_prints_as_its_golden_text(name: str, golden: Callable[[str, str], None]) -> None:
    found = in_pools(lowered("corpus/f_attention_block"), POOLS) if name == "pools" else lowered("../golden/quantized")
    facts = report(found, ladder=True)
    kernels = tuple(dataclasses.replace(k, place=k.place and k.place.rsplit("/", 1)[-1]) for k in facts.kernels)
    golden(f"{name}.report.txt", f"{dataclasses.replace(facts, seconds={}, kernels=kernels)}\n")


def test_a_picture_has_each_buffer_where_it_lies() -> None:
    facts = made(buffer("a", 60, 0, (0, 1)), buffer("b", 60, 60, (1, 3)), buffer("c", 60, 0, (3, 3)))
    found = picture(facts, facts.pools[0])
    cells = [line.split("|")[1] for line in found if "|" in line]
    assert len(cells) == HEIGHT
    assert cells[0].rstrip() == " " * 6 + "b" * 18 and cells[-1] == "a" * 12 + " " * 6 + "c" * 6
    assert found[-1].endswith(" " * 6 + "^^^^^^ peak")


def test_a_picture_is_never_too_wide() -> None:
    facts = report(lowered(by_rows(64, 6)))
    assert all(len(line) <= WIDTH + 20 for line in picture(facts, facts.pools[0]))
    assert picture(made(), made().pools[0]) == []


def test_the_arena_is_no_longer_a_bare_number() -> None:
    facts = made(buffer("a", 60, 0, (0, 1)), buffer("b", 60, 100, (1, 1)))
    text = str(facts)
    assert ("arena      160 bytes (live at once 120, waste 40, not proved to be the best plan of this schedule; "
            "no schedule needs less than 0)") in text
    assert "share" not in text and "they share 30 bytes" in str(made(buffer("a", 60, 0, (0, 1)), buffer("b", 60, 30, (1, 1))))
    assert "peak       120 bytes live at kernel 1 add mul (m.mlir:2:3)" in text and "alive      a 60, b 60" in text
