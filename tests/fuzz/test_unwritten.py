"""Random programs over variables without initial values, in nested branches and loops: compiled code gives what the interpreter
gives, fails where it fails, with the same operator, and leaves the same variables, call after call."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables
from tosaic.runtime.variables import Context

from ..aot.c_programs import needs_gcc
from .generators.unwritten import CONDITIONS, Program, generated, text_of
from .generators.unwritten_forms import for_tensorflow, python_of, tensorflow_of
from .oracles.artifact import Library

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


def test_a_call_that_fails_before_it_writes_takes_no_old_copies_back() -> None:
    """A check that fails first in programs that may also fail late, with copies of their variables."""
    assert not [seed for seed in (1505, 1737, 2509, 2657, 2689, 2788) if differences(range(seed, seed + 1), Counter())]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", range(2))
def test_both_engines_fail_at_the_same_operator_and_leave_the_same_variables(group: int) -> None:
    found: Counter[str] = Counter()
    assert not differences(range(GROUP * group, GROUP * (group + 1)), found)
    assert set(found) == {"result", "variable", "check"} and min(found.values()) >= 5, found


@pytest.mark.long
@pytest.mark.parametrize("group", range(50))
def test_two_thousand_more_programs(group: int) -> None:
    assert not differences(range(1000 + GROUP * group, 1000 + GROUP * (group + 1)), Counter())


# ---- other front doors -----------------------------------------------------------------------------------------------
def without_lines(endings: list[Ending]) -> list[Ending]:
    return [replace(e, problem=(e.problem[0], 0) if e.problem else None) for e in endings]


def expected(program: Program, calls: list[list[Array]]) -> list[Ending]:
    """What the interpreter makes of the program's text."""
    return without_lines(interpreted(read_module(text_of(program)), calls))


def called(run: Callable[..., Array], calls: list[list[Array]], context: Context, prefix: str = "") -> list[Ending]:
    def state() -> dict[str, Array | None]:
        return {name.removeprefix(prefix): value for name, value in context.snapshot().items() if name.startswith(prefix)}

    return without_lines([ending(lambda given=given: run(*given), state) for given in calls])  # type: ignore[misc]


def test_python_functions_do_the_same() -> None:
    for seed in range(3000, 3020):
        rng, program, prefix = random.Random(seed), generated(seed), f"unwritten.{seed}."
        calls = [arguments(rng) for _ in range(CALLS)]
        found = called(tosaic.jit(python_of(program, prefix)), calls, tosaic.default_context, prefix)
        same_state(found, expected(program, calls), seed)


def test_branches_and_loops_of_tensorflow_do_the_same() -> None:
    for seed in range(4000, 4020):
        rng, program = random.Random(seed), for_tensorflow(generated(seed, assertions=False))
        calls, context = [arguments(rng) for _ in range(CALLS)], Context("tensorflow")
        module = to_tosa(read_module(tensorflow_of(program)), "main", None, Bindings({}, {}))
        same_state(called(Traced(module, "main").compile(context=context), calls, context), expected(program, calls), seed)


@needs_gcc
@pytest.mark.parametrize("seed", range(5000, 5003))
def test_object_files_do_the_same(seed: int, tmp_path: Path) -> None:
    rng, program = random.Random(seed), generated(seed)
    module, calls = read_module(text_of(program)), [arguments(rng) for _ in range(CALLS)]
    library = Library(Traced(module, "main").lower(), tmp_path)

    def call(*given: Array) -> Array:
        status, results = library.call(given)
        if status:
            raise library.lowered.program.faults[status - 1].problem
        return results[0]

    assert [ending(lambda given=given: call(*given), library.state) for given in calls] == interpreted(  # type: ignore[misc]
        module, calls)


def same_state(found: list[Ending], right: list[Ending], seed: int) -> None:
    """Equal, but for variables that a form does not declare because it does not use them."""
    for number, (a, b) in enumerate(zip(found, right, strict=True)):
        state = dict(a.state)
        assert (a.result, a.problem) == (b.result, b.problem), (seed, number)
        assert state == {name: value for name, value in b.state if name in state}, (seed, number)
