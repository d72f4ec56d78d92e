"""The schedule of a program as text: it says what runs, and a compiler that reads it makes the same loops, or those that it
asks for."""
from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.kernels.kernel import Compute, Kernels
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.text import print_program
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.row_tiling.row_tiling import RowPolicy
from tosaic.lowering.schedule.schedule import lower, lower_each_way, strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.schedule.schedule_text import ScheduleText, print_schedule, read_schedule
from tosaic.lowering.schedule.search_space import alternatives
from tosaic.lowering.schedule.strategy import Precision
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv
from .costs import every_machine_costs
from .kernels import TARGETS, V4, random_data
from .test_fused_chain import CASES, attention, kernels_of, small

CORPUS = sorted((Path(__file__).parents[1] / "data" / "corpus").glob("*.mlir"))
FEATURES = V4.features + ",+avx512vnni,+amx-tile,+amx-int8,+amx-bf16"
AMX = dataclasses.replace(V4, dot_product="u8s8", matrix_unit=("int8", "bfloat16"), features=FEATURES)
WAYS: dict[str, tuple[Target, RowPolicy | None, int, Precision]] = {
    "a matrix unit": (AMX, None, 1, "f32"),
    "bfloat16 limbs": (AMX, None, 1, "bf16x6"),
    "rows for memory": (V4, "memory", 1, "f32"),
    "several threads": (target("x86-64-v3"), None, 4, "f32"),
    "a microcontroller": (target("cortex-m7"), None, 1, "f32"),
}


def three_convolutions() -> Kernels:
    """Convolutions whose windows leave their inputs, one after the other."""
    g = Graph()
    x, w = g.input(1, 20, 20, 8), np.full((8, 3, 3, 8), 0.5, np.float32)
    for _ in range(3):
        x = conv(g, x, w, np.full(8, 0.25, np.float32), pad=(1, 1, 1, 1))
    module = g.module(x)
    return fuse(module, module.function("main"))


def layers(*depths: int) -> Kernels:
    """Products with constant weights, one after the other."""
    g, rng = Graph(), np.random.default_rng(0)
    x: Value = g.input(1, 48, depths[0])
    for k, n in itertools.pairwise(depths):
        weight = rng.integers(-4, 5, (1, k, n)).astype(np.float32)
        x = g.op("tanh", g.op("matmul", x, weight, np.zeros(1, np.float32), np.zeros(1, np.float32)))
    module = g.module(x)
    return fuse(module, module.function("main"))


def each_program() -> Iterator[tuple[str, Callable[[str | None], list[Program]]]]:
    """What is made of the functions of the corpus, and of chains of kernels, each way; of a schedule's text if there is one."""
    for path in CORPUS:
        traced = tosaic.load(path).main.trace()
        if not all(getattr(v.type, "is_static", True) for v in traced.function.arguments):
            continue
        kernels = traced.lower(tosaic.CompileOptions(V4)).kernels
        for way, (machine, rows, threads, precision) in WAYS.items():
            yield f"{path.stem}, {way}", ways_of(kernels, machine, rows, threads, precision)
    for name, case in CASES.items():
        for threads in (1, 3):
            yield f"{name}, {threads} threads", ways_of(kernels_of(case), small(V4), None, threads, "f32")
    yield "parts of rows", ways_of(three_convolutions(), dataclasses.replace(V4, l2_bytes=1 << 8), None, 3, "f32")
    for way, (machine, rows, threads, precision) in WAYS.items():
        yield f"three convolutions, {way}", ways_of(three_convolutions(), machine, rows, threads, precision)
        yield f"layers, {way}", ways_of(layers(64, 128, 96), machine, rows, threads, precision)


def ways_of(kernels: Kernels, machine: Target, rows: RowPolicy | None, threads: int, precision: Precision
            ) -> Callable[[str | None], list[Program]]:
    return lambda text: lower_each_way(kernels, machine, rows, threads, precision=precision,
                                       asked=None if text is None else ScheduleText(text))


@pytest.fixture
def fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little work is divided, too."""
    every_machine_costs(monkeypatch, task_grain_cycles=200, barrier_cycles=1)


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("fine")
def test_a_schedule_reads_back_and_gives_the_same_loops() -> None:
    seen = ""
    for name, programs in each_program():
        for program in programs(None):
            text = print_schedule(program.schedules)
            assert read_schedule(text) == program.schedules, name
            assert print_schedule(read_schedule(text)) == text, name
            again = {print_program(p): p for p in programs(text)}
            assert print_program(program) in again, name
            assert again[print_program(program)].schedules == program.schedules, name
            seen += text
    for words in ("in the loops of kernel", "tasks beside each other", "the last", "  tasks: ", "  float32: ", "padded copy",
                  "contraction: bf16x6", "row reduction: 3 passes", "elementwise: ", "window: "):
        assert words in seen, words


def test_what_is_shown_is_what_runs() -> None:
    """Kernels that run by rows make no padded copy, and the schedule says none."""
    for rows, has_halo in (("memory", False), ("never", True)):
        program = lower(three_convolutions(), V4, rows)  # type: ignore[arg-type]
        text = print_schedule(program.schedules)
        assert any(b.name.endswith(".halo") for f in program.functions for b in f.scratch) == has_halo
        assert text.count("of a padded copy") == 3 * has_halo
        assert text.count("rows: a range at a time") == 3 * (not has_halo)


def test_a_kernel_like_another_has_a_record_of_its_own() -> None:
    kernels = layers(64, 64, 64, 64)
    program = lower(kernels, V4)
    names = [nest.name for record in program.schedules for nest in record.nests]
    assert names == [k.out.name for k in kernels.kernels] and len(set(names)) == len(names) > 2


@pytest.mark.usefixtures("fine")
def test_tasks_are_those_of_the_steps() -> None:
    program = lower(layers(64, 128, 96), V4, threads=4)
    for step in program.steps:
        assert isinstance(step, Compute)
        tasks, function = program.schedules[step.kernel].tasks, program.functions[step.kernel]
        assert step.tasks == (tasks.count if tasks else 1) and len(function.phases) == (tasks.phases if tasks else 0)
        assert tasks is None or 0 < tasks.cycles < tasks.whole
    assert any(record.tasks for record in program.schedules)


def changed(text: str, old: str, new: str) -> str:
    assert len(re.findall(old, text)) >= 1, (old, text)
    return re.sub(old, new, text, count=1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["512 bits, dot4", "256 bits, no masks"])
def test_a_text_chooses_another_tile(name: str) -> None:
    kernels, machine = layers(64, 128, 96), TARGETS[name]
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    plain = lower(kernels, machine)
    strategy, = strategies_of(kernels.kernels[0], ScheduleRequest(machine))
    other = print_schedule(plain.schedules).replace(str(strategy), str(alternatives(strategy)[2]), 1)
    program = lower(kernels, machine, asked=ScheduleText(other))
    verify_program(program)
    assert print_schedule(program.schedules) == other
    assert print_program(program) != print_program(plain)
    np.testing.assert_allclose(run_program(program, inputs)[0], run_program(plain, inputs)[0], rtol=1e-5)


def test_a_text_chooses_inside_of_a_chain() -> None:
    kernels = kernels_of(lambda g: attention(g, 4, 512, 512, 16))
    program = lower(kernels, V4)
    text = print_schedule(program.schedules)
    order = "vectors of 16, packed while running, rows"
    other = changed(text, rf"\d+ rows by \d {order}", f"9 rows by 3 {order}")
    again = lower(kernels, V4, asked=ScheduleText(other))
    assert other != text and print_schedule(again.schedules) == other and print_program(again) != print_program(program)


@pytest.mark.usefixtures("fine")
def test_a_text_says_how_many_tasks_there_are() -> None:
    kernels = layers(64, 128, 96)
    text = print_schedule(lower(kernels, V4, threads=4).schedules)

    def parts(text: str) -> set[int]:
        return {s.tasks for s in lower(kernels, V4, threads=4, asked=ScheduleText(text)).steps if isinstance(s, Compute)}

    assert 5 in parts(changed(text, r"tasks: \d+ ", "tasks: 5 "))
    assert parts(re.sub(r"\n  tasks: .*", "", text)) == {1}


FAULTS: dict[str, tuple[str, str, str]] = {
    "a strategy that it cannot have": (
        r"contraction: fma, .*",
        "elementwise: 7 vectors of 16",
        "cannot run as .elementwise: 7 vectors",
    ),
    "a tile that it cannot have": (r"tiles of \d+ rows", "tiles of 99 rows", "cannot run as"),
    "another nest": (r"  (\S+) \[", r"  other [", "the schedule has other"),
    "another extent": (r"<\d+\]", "<5]", r"where there is"),
    "fewer kernels": (r"(?s)kernel 1:.*", "", "the schedule has 1 kernels, and the function 2"),
    "fewer nests": (r"\n  \S+ \[[^\n]*", "", "the schedule has 0 loop nests for a kernel that has 1"),
    "rows that run at a time": (r"(kernel 0:[^\n]*\n)", "\\1  rows: a range at a time\n", "the rows of .* are others"),
    "a chain": (r"(kernel 0:[^\n]*\n)", "\\1  rows: up to 9 at a time, in the loops of kernel 1\n", "the rows of .* are"),
    "tasks on one thread": (r"$", "\n  tasks: 4 by %3 x 48, 1 phase, about 10 of 40 cycles", "has 4 tasks in"),
    "a line of something else": (r"(kernel 0:[^\n]*\n)", "\\1  what is this\n", "expected a loop nest"),
    "a kernel of another number": (r"kernel 1:", "kernel 7:", "expected `kernel 1: `"),
    "something else": (r"(?s).*", "nothing", "expected `kernel 0: `"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_text_for_something_else_is_a_problem_with_its_place(fault: str) -> None:
    old, new, message = FAULTS[fault]
    kernels = layers(64, 128, 96)
    text = changed(print_schedule(lower(kernels, V4).schedules), old, new)
    with pytest.raises(tosaic.Problem, match=message) as caught:
        lower(kernels, V4, asked=ScheduleText(text, "s.txt"))
    problem = caught.value
    assert problem.kind == "schedule" and problem.help and str(problem.position).startswith("s.txt:")
    if new and "\n" not in new:
        assert problem.position is not None and new.strip() in text.split("\n")[problem.position.line - 1]


@pytest.mark.parametrize("text", ["", "\n", " \t\n\n"])
def test_an_empty_text_is_a_problem_at_its_beginning(text: str) -> None:
    with pytest.raises(tosaic.Problem) as caught:
        lower(layers(64, 128, 96), V4, asked=ScheduleText(text, "s.txt"))
    assert str(caught.value).startswith("s.txt:1:1: error[schedule]: the schedule is empty, and the function has 2 kernels\n")
    assert caught.value.help


def test_an_empty_text_is_the_schedule_of_a_function_without_kernels() -> None:
    kernels = fuse(module := Graph().module(), module.function("main"))
    assert not kernels.kernels and print_schedule(lower(kernels, V4).schedules) == ""
    assert lower(kernels, V4, asked=ScheduleText("")).schedules == ()


@pytest.mark.parametrize("text", ["// a comment", "# a comment\n# and another", "\n\n// a comment\n"])
def test_a_text_of_comments_is_a_problem_at_the_first(text: str) -> None:
    with pytest.raises(tosaic.Problem, match=r"expected `kernel 0: ` and its operators, got '(//|#) a comment'") as caught:
        lower(layers(64, 128, 96), V4, asked=ScheduleText(text, "s.txt"))
    assert str(caught.value.position) == f"s.txt:{1 + len(text) - len(text.lstrip())}:1" and caught.value.help


def test_a_text_that_ends_early_is_a_problem_at_its_end() -> None:
    """Wherever it is cut: the place is in the last line, or at the kernel of it."""
    kernels = layers(64, 128, 96)
    whole = print_schedule(lower(kernels, V4).schedules)
    refused = 0
    for length in range(len(whole)):
        text = whole[:length]
        try:
            program = lower(kernels, V4, asked=ScheduleText(text, "s.txt"))
        except tosaic.Problem as problem:
            refused += 1
            assert problem.position and problem.kind == "schedule" and problem.help, text
            last = len(text.rstrip().split("\n"))
            assert problem.position.source.name == "s.txt" and problem.position.line in (last, last - 1), text
        else:
            assert print_schedule(program.schedules) == text
    assert refused > len(whole) * 0.9


def test_kernels_that_are_missing_or_too_many_have_their_place() -> None:
    kernels = layers(64, 128, 96)
    lines = print_schedule(lower(kernels, V4).schedules).split("\n")
    for text, place, count in (("\n".join(lines[:2]), f"s.txt:2:{len(lines[1]) + 1}", 1),
                               ("\n".join([*lines, "kernel 2: tanh", "kernel 3: tanh"]), "s.txt:5:1", 4)):
        with pytest.raises(tosaic.Problem, match=f"the schedule has {count} kernels, and the function 2") as caught:
            lower(kernels, V4, asked=ScheduleText(text, "s.txt"))
        assert str(caught.value.position) == place


@pytest.mark.usefixtures("fine")
def test_tasks_that_cannot_be_are_a_problem() -> None:
    kernels = layers(64, 128, 96)
    text = changed(print_schedule(lower(kernels, V4, threads=4).schedules), r"tasks: \d+ ", "tasks: 999999 ")
    with pytest.raises(tosaic.Problem, match="cannot be divided into 999999 tasks"):
        lower(kernels, V4, threads=4, asked=ScheduleText(text))
