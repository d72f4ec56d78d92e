"""Random programs over variables without initial values, in nested branches and loops: compiled code gives what the interpreter
gives, fails where it fails, with the same operator, and leaves the same variables, call after call."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables
from tosaic.runtime.variables import Context

from .generators.unwritten import CONDITIONS, generated, text_of

CALLS = 6
GROUP = 40
"""Programs of one test."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ends: a result, or the kind and the line of a problem; and the variables behind it."""
    result: int | None
    problem: tuple[str, int] | None
    state: tuple[tuple[str, int | None], ...]


def arguments(rng: random.Random) -> list[Array]:
    return [np.array(rng.randint(-99, 99), np.int32), *(np.array(rng.random() < 0.5) for _ in CONDITIONS)]


def ending(call: Callable[[], Array], state: Callable[[], dict[str, Array | None]]) -> Ending:
    result = problem = None
    try:
        result = int(call())
    except Problem as caught:
        assert caught.position is not None
        problem = caught.kind, caught.position.line
    return Ending(result, problem, tuple((n, None if v is None else int(v)) for n, v in sorted(state().items())))


def interpreted(module: Module, calls: list[list[Array]]) -> list[Ending]:
    variables = InterpreterVariables()
    run = Interpreter(module, "main", variables)

    def state() -> dict[str, Array | None]:
        """The variables; before the first run that ends well, those that compiled code has when it is loaded."""
        declared = {o.op.symbol: o.op.initial for o in module.declarations}  # type: ignore[attr-defined]
        return declared | variables.snapshot()

    return [ending(lambda given=given: run(*given)[0], state) for given in calls]  # type: ignore[misc]


def compiled(module: Module, calls: list[list[Array]]) -> list[Ending]:
    context = Context("unwritten")
    run = Traced(module, "main").lower().compile(context)
    try:
        return [ending(lambda given=given: run(*given), context.snapshot) for given in calls]  # type: ignore[misc]
    finally:
        run.close()


def differences(seeds: range, found: Counter[str]) -> list[int]:
    """The seeds whose programs differ between the engines; `found` counts how calls end."""
    wrong = []
    for seed in seeds:
        rng = random.Random(seed)
        module, calls = read_module(text_of(generated(seed))), [arguments(rng) for _ in range(CALLS)]
        right = interpreted(module, calls)
        found.update(e.problem[0] if e.problem else "result" for e in right)
        if compiled(module, calls) != right:
            wrong.append(seed)
    return wrong


@pytest.mark.parametrize("group", range(5))
def test_both_engines_fail_at_the_same_operator_and_leave_the_same_variables(group: int) -> None:
    found: Counter[str] = Counter()
    assert not differences(range(GROUP * group, GROUP * (group + 1)), found)
    assert set(found) == {"result", "variable", "check"} and min(found.values()) >= 5, found


@pytest.mark.long
@pytest.mark.parametrize("group", range(50))
def test_two_thousand_more_programs(group: int) -> None:
    assert not differences(range(1000 + GROUP * group, 1000 + GROUP * (group + 1)), Counter())
