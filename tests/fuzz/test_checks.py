"""Random graphs with checks, in branches and loops too, through the whole compiler: a call fails where the interpreter
fails, with the same check, and leaves the same variables."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced
from tosaic.runtime.errors import Problem
from tosaic.runtime.variables import Context

from ..aot.c_programs import needs_gcc
from .generators.checks import with_checks
from .generators.functions import Case, case
from .oracles import native
from .oracles.artifact import check_artifact
from .oracles.native import USABLE
from .oracles.reference import Expected, Outcome
from .oracles.verdict import check
from .test_differential import depth_of

FIRST = ("cond_if", "while_loop", "state shift", "variable_write", "variable_write")


def made(seed: int) -> Case:
    return with_checks(case(seed, 3 + seed % 12, FIRST[seed % len(FIRST)]), seed)


def is_decided(expected: Expected) -> bool:
    """True if no operator's error decides a check."""
    def ends(found: Outcome) -> tuple[int, str]:
        return len(found.results), found.problem.message if found.problem else ""

    return all(ends(s) == ends(expected.exact) for s in expected.samples)


def run(seed: int) -> str:
    """Check one case: the message of the problem that it ends in, or how it could not be judged."""
    found = made(seed)
    expected = Expected.of(found.module, found.calls)
    if not is_decided(expected):
        return "undecided"
    try:
        check(found.module, found.calls, depth_of(found, seed))
    except Problem as problem:
        assert problem.kind == "check" and "in every call" in str(problem.help), problem
        assert expected.exact.problem is not None
        return "always"
    if expected.exact.problem is not None:
        same_failure(found, expected.exact)
        return expected.exact.problem.message
    return ""


def same_failure(found: Case, right: Outcome) -> None:
    """The message, and the variables after it, which are those before the call."""
    context = Context("checks")
    compiled = Traced(found.module, "main").compile(context=context)
    actual = native.outcome(compiled, found.calls, context, "native")
    assert actual.problem is not None and right.problem is not None
    assert (actual.problem.message, actual.problem.kind) == (right.problem.message, right.problem.kind)
    before = native_state(found, len(right.results))
    for name, value in actual.state[-1].items():
        kept = before.get(name)
        assert (value is None) == (kept is None) and (value is None or np.array_equal(value, kept, equal_nan=True)), name


def native_state(found: Case, calls: int) -> dict[str, np.ndarray | None]:
    """The variables of the compiled module after `calls` calls."""
    context = Context("before")
    compiled = Traced(found.module, "main").compile(context=context)
    for inputs in found.calls[:calls]:
        compiled(*inputs, context=context)
    return dict(context.snapshot())


SEEDS = range(5000, 5018)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", range(2))
def test_a_check_fails_where_the_interpreter_says_and_changes_nothing(group: int) -> None:
    found = [run(seed) for seed in SEEDS[group::2]]
    assert sum(f != "undecided" for f in found) >= 6
    assert any(f.startswith("check ") for f in found) and "" in found


@needs_gcc
@pytest.mark.parametrize("seed", range(5100, 5102))
def test_checks_in_object_files_fail_alike(seed: int, tmp_path: Path) -> None:
    found = made(seed)
    expected = Expected.of(found.module, found.calls)
    assert is_decided(expected)
    lowered = Traced(found.module, "main").lower(tosaic.CompileOptions(list(USABLE.values())[seed % len(USABLE)]))
    check_artifact(lowered, found.calls, expected, tmp_path)
