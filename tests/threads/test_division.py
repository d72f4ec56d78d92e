"""Kernels whose loops are divided among threads give the same bits as undivided ones, in any order of the parts."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.cost import cycles
from tosaic.lowering.loops.interpret import LoopMemory
from tosaic.lowering.loops.interpret_steps import run_program, run_tasks
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.loops.verify import verify, verify_program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.schedule import lower, schedule
from tosaic.lowering.schedule.parallelize import MAX_DIVIDED_DEPTH, divide

from ..native.machines import runs_here
from ..schedule.expressions import kernels, windows
from ..schedule.kernels import meaning, random_data, same
from .cases import CASES, TARGETS, THREADS, V4, fine, lowered, most_parts  # noqa: F401  `fine` is a fixture

UNDIVIDED = {"gather"}
"""Cases with too little work in an iteration of their loops; they come out right as they are."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_parts_give_the_bits_of_the_whole(name: str, machine: str, fine: None) -> None:  # noqa: F811
    t = TARGETS[machine]
    kernels, whole = lowered(CASES[name], t, 1)
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    assert most_parts(whole) == 1
    expected = load(whole, plan(whole), t)(*inputs) if runs_here(t) else ()
    for threads in THREADS if machine == "256 bits, no masks" else THREADS[1:2]:
        _, program = lowered(CASES[name], t, threads)
        verify_program(program)
        assert name in UNDIVIDED or most_parts(program) in (threads, 2 * threads)
        if runs_here(t):
            call = load(program, plan(program), t)
            for actual, right in zip(call(*inputs), expected, strict=True):
                np.testing.assert_array_equal(actual, right)
            for actual, right in zip(call(*inputs, num_threads=1), expected, strict=True):
                np.testing.assert_array_equal(actual, right)
            call.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_parts_do_not_depend_on_each_other(name: str, fine: None) -> None:  # noqa: F811
    """The interpreter runs the last part first, and knows what nothing has written."""
    kernels, whole = lowered(CASES[name], V4, 1)
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    _, program = lowered(CASES[name], V4, 3)
    for actual, right in zip(run_program(program, inputs), run_program(whole, inputs), strict=True):
        np.testing.assert_array_equal(actual, right)


@pytest.mark.parametrize("name", CASES)
def test_a_program_in_parts_reads_back(name: str, fine: None) -> None:  # noqa: F811
    _, program = lowered(CASES[name], V4, 3)
    text = print_program(program, constants=True)
    again = read_program(text)
    assert print_program(again, constants=True) == text
    verify_program(again)
    assert again.steps == program.steps


def test_for_one_thread_nothing_changes() -> None:
    for case in CASES.values():
        _, program = lowered(case, V4, 1)
        assert "parts" not in print_program(program) and "copies" not in print_program(program)


def test_little_work_is_not_divided() -> None:
    little = 0
    for case in CASES.values():
        kernels, plain = lowered(case, V4, 1)
        if all(cycles(f, V4.costs) < 2 * V4.costs.task_grain_cycles for f in plain.functions):
            little += 1
            assert most_parts(lower(kernels, V4, threads=8)) == 1
    assert little > len(CASES) // 2


def in_parts(kernel: Kernel, data: dict[Buffer, Array], parts: int) -> Array | None:
    """The kernel's output by its parts, the last one first; None where it cannot be divided."""
    function = divide(schedule(kernel, V4, keeps=MAX_DIVIDED_DEPTH), parts, V4.costs)
    if function is None:
        return None
    verify(function)
    memory = LoopMemory()
    for b in function.params:
        if b in data and b is not kernel.out:
            memory.add(b, data[b])
    run_tasks(function, parts, memory)
    return memory.array(kernel.out)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_parts_of_any_expression_give_what_it_means(fine: None, example: tuple[Kernel, dict[Buffer, Array]]  # noqa: F811
                                                    ) -> None:
    check_tasks(*example)


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(windows())
def test_parts_of_any_window_give_what_it_means(fine: None, example: tuple[Kernel, dict[Buffer, Array]]  # noqa: F811
                                                ) -> None:
    kernel, data = example
    if kernel.out.size < 400:
        check_tasks(kernel, data)


def check_tasks(kernel: Kernel, data: dict[Buffer, Array]) -> None:
    for parts in (2, 5):
        found = in_parts(kernel, data, parts)
        if found is not None:
            same(found, meaning(kernel, data), f"{parts} parts")
