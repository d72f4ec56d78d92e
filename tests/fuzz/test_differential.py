"""Random graphs through the whole compiler, held against the reference interpreter at every stage.

Each case follows from a seed (`generators`), and goes through all `oracles`: the verifier, printer and reader, what kernels
mean, the loops statement by statement, and machine code for several targets, with the arena poisoned between calls. The
sweep here is fixed and takes less than a minute; a longer one is

    TOSAIC_FUZZ_SECONDS=1200 TOSAIC_FUZZ_SEED=1 pytest -m long tests/fuzz

(60 seconds from seed 0 without the variables), which lists every seed that fails. `case(seed, size, first)` makes the
same module again.
"""
from __future__ import annotations

import os
import random
import time
import traceback
from pathlib import Path

import pytest
import tosaic.lowering.dialects.tosa
from tosaic import Memory, Pool
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.operator import OPERATORS

from ..aot.c_programs import needs_gcc
from .generators.functions import RECIPES, Case, case, operator_names
from .oracles.artifact import check_artifact
from .oracles.native import USABLE
from .oracles.reference import Expected
from .oracles.verdict import Depth, check

SMALL = 6000
"""Elements of all values of a function whose loops are interpreted, at most: that is slow."""


def depth_of(made: Case, seed: int, targets: int = 2) -> Depth:
    """Which targets a case is compiled for, and on which it is looked at more closely."""
    rng = random.Random(seed)
    names = rng.sample(sorted(USABLE), min(targets, len(USABLE)))
    body = made.module.function("main").body
    elements = sum(r.tensor.size for o in body.walk() for r in o.results if hasattr(r.type, "element"))
    return Depth(tuple(names), tuple(names[:1]) if seed % 2 else (),
                 tuple(names[:1]) if elements < SMALL and seed % 4 == 0 else ())


def run(seed: int, size: int, first: str | None = None, targets: int = 2) -> int:
    """Check one case; how many elements had to be right."""
    made = case(seed, size, first)
    return check(made.module, made.calls, depth_of(made, seed, targets)).checked


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RECIPES)
def test_a_graph_of_one_operator_means_the_same_at_every_stage(name: str) -> None:
    """Every second operator in two graphs, the others in one."""
    number = list(RECIPES).index(name)
    for seed in range(1 + number % 2):
        run(1000 * seed + number, 1, name, targets=3)


@pytest.mark.parametrize("seed", range(15))
def test_a_graph_of_two_to_four_operators_means_the_same_at_every_stage(seed: int) -> None:
    run(seed, 2 + seed % 3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(100, 112))
def test_a_graph_of_many_operators_means_the_same_at_every_stage(seed: int) -> None:
    run(seed, 5 + seed % 21)


@needs_gcc
@pytest.mark.parametrize("seed", range(200, 206))
def test_the_object_file_of_a_graph_means_the_same(seed: int, tmp_path: Path) -> None:
    made = case(seed, 2 + seed % 17, "state shift" if seed % 2 else None)
    lowered = Traced(made.module, "main").lower(tosaic.CompileOptions(list(USABLE.values())[seed % len(USABLE)]))
    check_artifact(lowered, made.calls, Expected.of(made.module, made.calls), tmp_path)


@pytest.mark.sampled(2)
@needs_gcc
@pytest.mark.parametrize("seed", range(300, 306))
def test_the_object_file_of_a_graph_means_the_same_in_any_pools(seed: int, tmp_path: Path) -> None:
    made = case(seed, 2 + seed % 17, "state shift" if seed % 2 else None)
    target = list(USABLE.values())[seed % len(USABLE)]
    size = Traced(made.module, "main").lower(tosaic.CompileOptions(target)).plan.size_bytes
    memory = Memory(pools=(Pool("small", size // (2 + seed % 3)), Pool("large")), workspace_io=seed % 3 == 0,
                    constant_pools=(Pool("itcm", 40 + seed % 100), Pool("flash")) if seed % 4 else ())
    lowered = Traced(made.module, "main").lower(tosaic.CompileOptions(target, memory=memory))
    check_artifact(lowered, made.calls, Expected.of(made.module, made.calls), tmp_path)


def test_random_graphs_have_every_operator_of_the_table() -> None:
    seen = {name for seed in range(800) for name in operator_names(case(seed, 12).module)}
    aliases = {a for op in OPERATORS.values() for a in op.aliases}
    wanted = {name.removeprefix("tosa.") for name, op in OPERATORS.items() if name.startswith("tosa.") and name not in aliases}
    assert wanted - seen == {"variable"}  # that one stands at module level


def test_a_seed_makes_the_same_case_again() -> None:
    from .oracles.text import print_module
    first, second = case(7, 15), case(7, 15)
    assert print_module(first.module) == print_module(second.module)
    assert all(a.tobytes() == b.tobytes() for x, y in zip(first.calls, second.calls) for a, b in zip(x, y))


@pytest.mark.long
def test_many_random_graphs_mean_the_same_at_every_stage() -> None:
    end = time.monotonic() + float(os.environ.get("TOSAIC_FUZZ_SECONDS", "60"))
    seed, failures = int(os.environ.get("TOSAIC_FUZZ_SEED", "0")) << 20, []
    while time.monotonic() < end:
        try:
            run(seed, 1 + seed % 25)
        except Exception:  # any exception is a fault of the compiler
            failures.append(f"case({seed}, {1 + seed % 25}): {traceback.format_exc().splitlines()[-1]}")
        seed += 1
    assert not failures, "\n".join(failures)
