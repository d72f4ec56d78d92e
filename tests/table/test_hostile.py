"""Data that the specification leaves open - indices out of range, shifts by any amount, quotients by 0, NaN as an integer -
end in some result: native code neither traps nor steps outside its arrays, and gives what the reference documents.

It runs in a child, on memory with fences around; a child that ends early has left the name of its case.
"""
from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import time
import traceback
from pathlib import Path

import pytest
from tosaic.runtime.arena import address

from ..executable.children import in_child, needs_fork
from .combinations import TABLE, Types, written
from .fences import can_fence, fenced, fences
from .property import check
from .signatures import case
from .test_properties import targets

OPEN = ("arithmetic_right_shift", "logical_left_shift", "logical_right_shift", "intdiv", "mul", "pow", "cast", "gather",
        "row_gather", "row_gather_block_scaled", "scatter", "rescale", "table", "add", "sub", "negate", "reduce_sum",
        "conv2d", "depthwise_conv2d", "matmul", "matmul_t", "resize")
"""Operators that require something of their data."""
PLAIN = ("argmax", "avg_pool2d", "concat", "conv3d", "max_pool2d", "pad", "reduce_max", "reverse", "slice", "tile",
         "transpose", "transpose_conv2d", "cast_to_block_scaled", "cast_from_block_scaled", "fft2d", "select", "while_loop")
"""Others, whose accesses are worth a fence."""
SOME = 2
"""Combinations of one operator that are tried here."""
pytestmark = [needs_fork, pytest.mark.skipif(not can_fence, reason="fences are made by Linux")]


def survives(name: str, combinations: tuple[Types, ...], seeds: range, hostile: bool, report: Path) -> bool:
    """Runs the cases in this process; `report` holds the case that is running, or how it failed."""
    with fences():
        for types in combinations:
            for seed in seeds:
                which = f"{name}:{written(types)}:{seed}{' hostile' * hostile}"
                report.write_text(f"{which} ended the process")
                try:
                    made = case(name, types, seed, hostile=hostile)
                    check(made, targets(made), loops=False)
                except Exception:
                    report.write_text(f"{which}: {traceback.format_exc()[-3000:]}")
                    return False
    return True


def in_a_child(name: str, combinations: tuple[Types, ...], seeds: range, hostile: bool, folder: Path) -> None:
    report = folder / "report"
    assert in_child(lambda: survives(name, combinations, seeds, hostile, report)), report.read_text()


def test_a_step_over_a_fence_ends_the_process() -> None:
    def step(offset: int, at_end: bool) -> bool:
        faulthandler.disable()  # which would tell of it
        array = fenced(100, 4, at_end)
        ctypes.c_uint8.from_address(address(array) + offset).value = 1
        return True

    assert in_child(lambda: step(99, True) and step(0, False))
    assert not in_child(lambda: step(100, True))
    assert not in_child(lambda: step(-1, False))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OPEN)
def test_data_that_the_specification_leaves_open_do_no_harm(name: str, tmp_path: Path) -> None:
    in_a_child(name, TABLE[name].combinations("1.0", "1.1")[:SOME], range(1), True, tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLAIN)
def test_no_access_is_outside_of_arrays_and_arenas(name: str, tmp_path: Path) -> None:
    in_a_child(name, TABLE[name].combinations("1.0", "1.1")[:1], range(100, 101), False, tmp_path)


@pytest.mark.long
def test_many_hostile_cases_do_no_harm(tmp_path: Path) -> None:
    end = time.monotonic() + float(os.environ.get("TOSAIC_FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("TOSAIC_FUZZ_SEED", "0")) << 20
    failures: list[str] = []
    while time.monotonic() < end:
        for name in (*OPEN, *PLAIN):
            combinations = TABLE[name].combinations("1.0", "1.1", "more")
            some = tuple(random.Random(seed).sample(combinations, min(SOME, len(combinations))))
            try:
                in_a_child(name, some, range(seed, seed + 1), name in OPEN, tmp_path)
            except AssertionError as error:
                failures.append(str(error).splitlines()[0])
            if time.monotonic() >= end:
                break
        seed += 1
    assert not failures, "\n".join(failures)
