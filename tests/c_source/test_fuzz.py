"""Random graphs as C source: they mean what the graph means, without a warning and without undefined behaviour. A longer run is

    TOSAIC_FUZZ_SECONDS=1200 TOSAIC_FUZZ_SEED=1 pytest -m long tests/c_source
"""
from __future__ import annotations

import itertools
import os
import time
import traceback
from pathlib import Path

import pytest
import tosaic
from tosaic import Memory, Pool
from tosaic.jit.stages import Traced
from tosaic.lowering.target.presets import target

from ..fuzz.generators.functions import case
from ..fuzz.oracles.artifact import check_artifact
from ..fuzz.oracles.reference import Expected
from .functions import needs_gcc

pytestmark = needs_gcc
TARGETS = ("any", "any", "any", "x86-64-v3")
"""Machines that the source is made for, by the seed: with vectors, and with products and sums that are rounded once, too."""


def check(seed: int, size: int, folder: Path) -> None:
    made = case(seed, size, "state shift" if seed % 3 == 1 else None)
    machine = target(TARGETS[seed % len(TARGETS)])
    pools = Memory(pools=(Pool("small", 400), Pool("large")), workspace_io=seed % 2 == 0, constant_pools=(Pool("flash"),))
    options = tosaic.CompileOptions(machine, threads=1, memory=pools if seed % 4 == 3 else Memory())
    lowered = Traced(made.module, "main").lower(options)
    check_artifact(lowered, made.calls, Expected.of(made.module, made.calls), folder, "c")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(400, 412))
def test_a_random_graph_means_the_same_as_c_source(seed: int, tmp_path: Path) -> None:
    check(seed, 1 + seed % 19, tmp_path)


@pytest.mark.long
def test_many_random_graphs_mean_the_same_as_c_source(tmp_path: Path) -> None:
    end = time.monotonic() + float(os.environ.get("TOSAIC_FUZZ_SECONDS", "60"))
    failures = []
    for seed in itertools.count(int(os.environ.get("TOSAIC_FUZZ_SEED", "0")) << 20):
        if time.monotonic() > end:
            break
        try:
            folder = tmp_path / str(seed)
            folder.mkdir()
            check(seed, 1 + seed % 25, folder)
        except Exception:  # any exception is a fault of the compiler
            failures.append(f"check({seed}, {1 + seed % 25}): {traceback.format_exc().splitlines()[-1]}")
    assert not failures, "\n".join(failures)
