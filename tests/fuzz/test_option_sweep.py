"""A part of the sweep over every option of a compile (`option_sweep`), and that no option, value or threshold is left out. The
whole is `python -m tosaic.tests.fuzz.option_sweep lower 10000` and `... compile 3000`, or

    pytest -m long tests/fuzz/test_option_sweep.py
"""
from __future__ import annotations

import importlib
import random
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm
from tosaic.jit.stages import Traced
from tosaic.lowering.memory.planner import DEPRECATED
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

from .generators.compile_options import ARTIFACT, MEMORY, OPTIONS, POOL, THRESHOLDS, draw
from .generators.doors import DOORS, EXACT
from .option_sweep import sweep

PARTS, OF_PART = 3, {"lower": 24, "compile": 12, "save": 8}


def test_every_option_has_a_generator() -> None:
    assert {f.name for f in fields(tosaic.CompileOptions)} == set(OPTIONS)
    assert {f.name for f in fields(tosaic.Memory)} - set(DEPRECATED) == set(MEMORY)
    assert {f.name for f in fields(tosaic.Pool)} - {"name"} == set(POOL)
    assert {f.name for f in fields(ArtifactForm)} == set(ARTIFACT)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_every_threshold_is_there(name: str) -> None:
    module, constant = name.rsplit(".", 1)
    own = getattr(importlib.import_module(f"tosaic.lowering.{module}"), constant)
    assert own not in THRESHOLDS[name]


@pytest.mark.sampled(4)
def test_every_value_of_every_option_is_drawn() -> None:
    made = DOORS["tosa"](3, 2)
    labels = Counter[tuple[str, str]]()
    for seed in range(260):
        try:
            labels.update(draw(random.Random(seed), Traced(made.module, made.name), seed % 4 == 0)[1])
        except tosaic.Problem:
            continue
    assert not [label for label, count in labels.items() if not count]


@pytest.mark.parametrize("seed", range(6))
def test_every_door_writes_the_same_network(seed: int) -> None:
    found = []
    for door in EXACT:
        made = DOORS[door](seed, 8)
        found.append(Interpreter(made.module, made.name, InterpreterVariables())(*made.call))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("mode", OF_PART)
def test_options_of_any_kind_compile(mode: str, part: int) -> None:
    count = OF_PART[mode]
    tally = sweep(mode, range(part * count, part * count + count))
    assert not tally.failures, "\n".join(tally.failures)
    assert not tally.outcomes["with less"] and tally.outcomes["refused"] < count // 2


@pytest.mark.long
@pytest.mark.parametrize(("mode", "count"), [("lower", 10_000), ("compile", 3_000), ("save", 1_000)])
@pytest.mark.timeout(0)
def test_ten_thousand_compile(mode: str, count: int) -> None:
    tally = sweep(mode, range(count))
    print(tally)
    assert not tally.failures and not tally.never, "\n".join([*tally.failures, str(tally.never)])
