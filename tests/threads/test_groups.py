"""Kernels that are tiled by rows are cut into tasks, each with rows and rings of its own: the same bits for any number of
threads, and whole models."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.kernels.kernel import Compute, Parallel
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.schedule import lower

from ..fuse.graphs import Graph
from ..native.machines import runs_here
from ..schedule.kernels import TARGETS, random_data
from .cases import SAME, THREADS, V4, convolution, depthwise, fine, lowered, most_parts, of_bytes  # noqa: F401

CORPUS = Path(__file__).parents[1] / "data" / "corpus"


def blocks(g: Graph) -> Value:
    """Two blocks of an inverted residual network, with a stride and a sum."""
    x = convolution(g, g.input(1, 29, 29, 3), 8, stride=(2, 2), pad=SAME)
    for out, stride in ((4, 1), (4, 2)):
        y = g.op("clamp", convolution(g, x, 24, 1), min_val=0.0, max_val=6.0)
        x = convolution(g, depthwise(g, y, stride=(stride, stride), pad=SAME), out, 1)
    return g.op("add", x, convolution(g, depthwise(g, convolution(g, x, 24, 1), pad=SAME), 4, 1))


def turned_over(g: Graph) -> Value:
    x = convolution(g, g.input(1, 12, 9, 4), 8, pad=SAME)
    return g.op("add", convolution(g, g.op("reverse", x, axis=1), 4, 1), convolution(g, x, 4, 1))


CASES: dict[str, Callable[[Graph], Value]] = {
    "blocks": blocks,
    "two convolutions": lambda g: convolution(g, convolution(g, g.input(1, 15, 9, 4), 8, pad=SAME), 4, pad=SAME),
    "strides": lambda g: convolution(g, convolution(g, g.input(1, 29, 17, 4), 8, stride=(2, 2), pad=SAME), 4, stride=(2, 2),
                                     pad=SAME),
    "rows that nobody reads": lambda g: g.op("max_pool2d", convolution(g, g.input(1, 15, 12, 4), 8), kernel=(2, 2),
                                             stride=(2, 2), pad=(0, 1, 0, 0)),
    "turned over": turned_over,
    "bytes": lambda g: of_bytes(g, of_bytes(g, g.input(1, 13, 9, 4, dtype="int8"), 8), 4),
    "dilated": lambda g: convolution(g, convolution(g, g.input(1, 20, 9, 4), 8, pad=SAME), 4, dilation=(3, 3),
                                     pad=(3, 3, 3, 3)),
}
NEAR = {name: replace(t, l2_bytes=1 << 8) for name, t in TARGETS.items() if name in ("512 bits, dot4", "256 bits, no masks")}
"""Machines whose caches hold next to nothing."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", NEAR)
@pytest.mark.parametrize("name", CASES)
def test_parts_of_rows_give_the_bits_of_the_whole(name: str, machine: str) -> None:
    t = NEAR[machine]
    kernels, whole = lowered(CASES[name], t, 1)
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    expected = load(whole, plan(whole), t)(*inputs) if runs_here(t) else run_program(whole, inputs)
    for threads in THREADS if machine == "256 bits, no masks" else THREADS[1:2]:
        _, program = lowered(CASES[name], t, threads)
        verify_program(program)
        assert name == "turned over" or any(isinstance(s, Parallel) for s in program.steps)
        if runs_here(t):
            call = load(program, plan(program), t)
            for number in (None, 1):
                for actual, right in zip(call(*inputs, num_threads=number), expected, strict=True):
                    np.testing.assert_array_equal(actual, right)
            call.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_each_part_reads_only_rows_that_it_has_computed(name: str) -> None:
    """The interpreter runs the last part first, with rings in which nothing has been written."""
    t = replace(V4, l2_bytes=1 << 8)
    kernels, whole = lowered(CASES[name], t, 1)
    _, program = lowered(CASES[name], t, 3)
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    for actual, right in zip(run_program(program, inputs), run_program(whole, inputs), strict=True):
        np.testing.assert_array_equal(actual, right)
    text = print_program(program, constants=True)
    again = read_program(text)
    assert print_program(again, constants=True) == text and again.steps == program.steps
    verify_program(again)


def test_parts_keep_rings_of_their_own() -> None:
    _, program = lowered(blocks, replace(V4, l2_bytes=1 << 8), 2)
    (step,) = [s for s in program.steps if isinstance(s, Parallel)][:1]
    inner = {s.kernel for task in step.tasks for s in task} - {step.tasks[0][-1].kernel}
    written = [b for f in (program.functions[k] for k in inner) for b in f.params if b.role == "temporary"]
    assert inner and all(b.copies == 2 and b.nbytes // 2 % 64 == 0 for b in written if b.copies > 1)
    assert sum(b.copies > 1 for b in set(written)) == len(inner)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", (2, 3, 8))
@pytest.mark.parametrize("model", ("f_mobilenet_block", "f_mobilenet_block_int8"))
def test_a_model_gives_the_same_bits_with_any_number_of_threads(model: str, threads: int, fine: None) -> None:  # noqa: F811
    entry = tosaic.load(CORPUS / f"{model}.mlir").entry()
    plain, parallel = (entry.compile(tosaic.CompileOptions(threads=n)) for n in (1, threads))
    assert most_parts(parallel.lowered.program) > 1
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, t.shape).astype(t.dtype) if t.dtype == "int8" else
              rng.standard_normal(t.shape).astype(t.dtype) for t in plain.executable.signature.inputs]
    np.testing.assert_array_equal(parallel(*inputs), plain(*inputs))


def test_for_memory_groups_stay_whole() -> None:
    kernels, _ = lowered(blocks, V4, 1)
    program = lower(kernels, V4, "memory", 2)
    assert not any(isinstance(s, Parallel) for s in program.steps)
    assert any(isinstance(s, Compute) and s.rows for s in program.steps)
    verify_program(program)
    assert plan(program).size_bytes <= plan(lower(kernels, V4, "never", 2)).size_bytes
