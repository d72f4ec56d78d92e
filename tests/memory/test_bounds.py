"""Numbers that are called a bound are one: over random graphs, no plan by any option that the replay accepts has fewer bytes
than `model_bound`, and none of one schedule fewer than are live at once; `exact` is never above the default.
"""
from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.check.verify import plan_faults
from tosaic.lowering.memory.model_bound import model_bound
from tosaic.lowering.memory.plan import Plan
from tosaic.lowering.memory.planner import Memory
from tosaic.lowering.options import CompileOptions
from tosaic.lowering.pipeline import State, run, start
from tosaic.lowering.target.presets import target

from ..fuse.graphs import Graph, conv

HOST = target("host")
MACHINES = [HOST, replace(HOST, l2_bytes=512), target("cortex-m4")]


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Windows, products, sums along axes, what softmax is made of, reshapes, and values that are read again later."""
    g, rng, zero = Graph(), np.random.default_rng(1), np.zeros(1, np.float32)
    rows, channels = draw(st.integers(2, 20)), draw(st.sampled_from([1, 3, 8]))
    columns = draw(st.integers(1, 6))
    values = [g.input(1, rows, columns, channels)]
    for _ in range(draw(st.integers(1, 6))):
        x = values[-1]
        match draw(st.sampled_from(["conv", "dilated", "add", "tanh", "pool", "softmax", "matmul"])):
            case "conv":
                weight = rng.standard_normal((channels, 3, 3, channels)).astype(np.float32)
                x = conv(g, x, weight, np.ones(channels, np.float32), pad=(1, 1, 1, 1))
            case "dilated":
                weight = rng.standard_normal((channels, 3, 1, channels)).astype(np.float32)
                x = conv(g, x, weight, np.ones(channels, np.float32), pad=(2, 2, 0, 0), dilation=(2, 1))
            case "add":
                x = g.op("add", x, draw(st.sampled_from(values)))
            case "tanh":
                x = g.op("tanh", x)
            case "pool":
                x = g.op("max_pool2d", x, kernel=(3, 1), stride=(1, 1), pad=(1, 1, 0, 0))
            case "softmax":
                e = g.op("exp", g.op("sub", x, g.op("reduce_max", x, axis=3)))
                x = g.op("mul", e, g.op("reciprocal", g.op("reduce_sum", e, axis=3)), zero.astype(np.int8))
            case "matmul":
                flat = g.op("reshape", x, g.shape(1, rows * columns, channels))
                other = g.op("transpose", flat, perms=(0, 2, 1))
                scores = g.op("matmul", flat, other, zero, zero)
                x = g.op("reshape", g.op("matmul", scores, flat, zero, zero), g.shape(1, rows, columns, channels))
        values.append(x)
    return g.module(values[-1])


OPTIONS = st.builds(
    CompileOptions, target=st.sampled_from(MACHINES), threads=st.sampled_from([1, 2]), order=st.booleans(),
    rows=st.sampled_from(["cache", "memory", "never"]),
    memory=st.builds(Memory, algorithm=st.sampled_from(["portfolio", "exact", "greedy_by_size", "hill_climb"]),
                     overlap=st.booleans(), workspace_io=st.booleans(), alignment=st.sampled_from([1, 16])))


def planned(module: Module, options: CompileOptions) -> State:
    return run(start(module, "main", options))


def parts(found: State) -> tuple[Program, Plan]:
    assert found.plan is not None
    return found.program, found.plan


@settings(max_examples=40, deadline=None, derandomize=True)
@given(modules(), OPTIONS, st.integers(0, 99))
def test_no_plan_that_the_replay_accepts_is_below_a_bound(module: Module, options: CompileOptions, seed: int) -> None:
    found = planned(module, options)
    assert found.kernels is not None
    program, plan = parts(found)
    bound = model_bound(found.kernels, options.memory.workspace_io)
    least = squeezed(program, plan, random.Random(seed))
    assert least >= bound
    if options.memory.overlap and plan.algorithm in ("portfolio", "exact"):
        assert least >= plan.live_bytes


def squeezed(program: Program, plan: Plan, draw: random.Random, tries: int = 60) -> int:
    """The size of the smallest plan of the same steps that the replay accepts, from moves of single buffers at random."""
    size = plan.size_bytes
    for _ in range(tries if plan.buffers else 0):
        i = draw.randrange(len(plan.buffers))
        buffer = plan.buffers[i]
        places = [*(b.byte_offset for b in plan.buffers), *(b.end for b in plan.buffers), draw.randrange(size + 1), 0]
        offset = draw.choice(places) // buffer.alignment * buffer.alignment
        if offset + buffer.size_bytes > size:
            continue
        moved = replace(plan, buffers=tuple(replace(b, byte_offset=offset) if b is buffer else b for b in plan.buffers))
        if not plan_faults(moved, program):
            plan = moved
            size = max(b.end for b in plan.buffers)
            plan = replace(plan, pools=(replace(plan.pools[0], size_bytes=size), *plan.pools[1:]))
    return size


@settings(max_examples=15, deadline=None, derandomize=True)
@given(modules(), OPTIONS)
def test_the_exact_planner_is_never_above_the_default(module: Module, options: CompileOptions) -> None:
    sizes = []
    for algorithm in ("exact", "portfolio"):
        memory = replace(options.memory, algorithm=algorithm)
        sizes.append(parts(planned(module, replace(options, memory=memory)))[1].size_bytes)
    assert sizes[0] <= sizes[1]


@pytest.mark.parametrize(("rows", "kernel"), [(9, 3), (20, 5)])
def test_the_rows_of_a_window_are_a_bound(rows: int, kernel: int) -> None:
    """Each row of the second convolution reads several rows of the first one's result."""
    g, weight = Graph(), np.ones((4, kernel, kernel, 4), np.float32)
    x = g.input(1, rows, 8, 4)
    for _ in range(2):
        x = conv(g, x, weight, np.ones(4, np.float32), pad=(kernel // 2,) * 4)
    found = planned(g.module(x), CompileOptions(HOST))
    assert found.kernels is not None and model_bound(found.kernels, False) == kernel * 8 * 4 * 4
    assert model_bound(found.kernels, True) == rows * 8 * 4 * 4
