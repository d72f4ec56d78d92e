"""Oracles: what kernels mean after fusion, and what their loops do statement by statement, is what the graph means."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.interpret import VariableContents, run
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.runtime.errors import Problem

from .reference import Outcome, Requirement


def outcome(
    run_once: Callable[[Sequence[Array], VariableContents], tuple[Array, ...]], calls: Sequence[Sequence[Array]]
) -> Outcome:
    state = VariableContents()
    results: list[tuple[Array, ...]] = []
    states: list[dict[str, Array | None]] = []
    for inputs in calls:
        try:
            results.append(tuple(np.array(r) for r in run_once(inputs, state)))
        except Problem as problem:
            if problem.kind == "internal":
                raise
            return Outcome(tuple(results), tuple(states), problem)
        states.append({n: v.copy() if n in state.written else None for n, v in state.data.items()})
    return Outcome(tuple(results), tuple(states))


def check_kernels(lowered: Lowered, calls: Sequence[Sequence[Array]], expected: Requirement) -> None:
    expected.check(outcome(lambda inputs, state: run(lowered.kernels, inputs, state), calls), "kernels")


def check_loops(lowered: Lowered, calls: Sequence[Sequence[Array]], expected: Requirement) -> None:
    """Slow: every lane of every statement. Accesses are checked, and reads of what nothing has written."""
    expected.check(outcome(lambda inputs, state: run_program(lowered.program, inputs, state), calls), "loops")


def check_text_of_loops(lowered: Lowered) -> None:
    """The program's text reads back to a program of the same text."""
    text = print_program(lowered.program, constants=True)
    assert print_program(read_program(text), constants=True) == text
