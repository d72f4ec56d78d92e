"""The check of right code finds nothing: random graphs of all types through the whole cross-check, its end-to-end bounds
among it.

A longer sweep: TOSAIC_FUZZ_SECONDS=1200 TOSAIC_FUZZ_SEED=1 pytest -m long tests/crosscheck
"""
from __future__ import annotations

import os
import time

import pytest
import tosaic.lowering.dialects.tosa  # noqa: F401  registers the operators
from tosaic.jit.stages import Traced
from tosaic.jit.tools.check.crosscheck import CrossCheck

from ..fuzz.generators.functions import case


def checked(seed: int, size: int) -> CrossCheck:
    made = case(seed, size)
    return Traced(made.module, "main").check(made.calls)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_right_code_agrees(seed: int) -> None:
    found = checked(9000 + seed, 1 + 3 * seed)
    assert found.agrees, str(found)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_right_code_agrees_in_many_graphs() -> None:
    end = time.monotonic() + float(os.environ.get("TOSAIC_FUZZ_SECONDS", "60"))
    first = seed = (int(os.environ.get("TOSAIC_FUZZ_SEED", "0")) << 20) + (1 << 19)
    alarms, operators, free = [], 0, 0
    while time.monotonic() < end:
        size = 1 + seed % 12
        try:
            found = checked(seed, size)
            operators, free = operators + found.operators, free + found.uncompared
            alarms += [] if found.agrees else [f"case({seed}, {size}): {found.difference}"]
        except Exception as error:  # of whatever kind: a fault of the compiler
            alarms.append(f"case({seed}, {size}): {type(error).__name__}: {error}")
        if alarms[-1:] and f"case({seed}," in alarms[-1]:
            print(alarms[-1], flush=True)
        seed += 1
        if seed % 100 == 0:
            print(f"{seed - first} graphs, {operators} operators, {free} elements free, {len(alarms)} alarms", flush=True)
    assert not alarms, "\n".join(alarms)


@pytest.mark.parametrize("seed, size", [(526083, 4), (526085, 6)])
def test_windows_of_bytes_whose_weights_change_from_row_to_row_compile(seed: int, size: int) -> None:
    """Found by the test above: such weights cannot be packed once for all rows."""
    assert checked(seed, size).difference is None
