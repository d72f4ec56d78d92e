"""Kernels that run together by blocks of rows, as those of attention: the same results, and nothing large between them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.kernels.interpret import run
from tosaic.lowering.kernels.kernel import Compute, Kernels
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.row_tiling.row_chains import chains
from tosaic.lowering.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, zero
from ..native.machines import runs_here
from .costs import every_machine_costs
from .kernels import TARGETS, random_data, same

FLOAT, SHIFT = zero("float32"), zero("int8")


def product(g: Graph, a: Value, b: Value) -> Value:
    return g.op("matmul", a, b, FLOAT, FLOAT)


def softmax(g: Graph, x: Value) -> Value:
    e = g.op("exp", g.op("sub", x, g.op("reduce_max", x, axis=2)))
    return g.op("mul", e, g.op("reciprocal", g.op("reduce_sum", e, axis=2)), SHIFT)


def attention(g: Graph, heads: int, queries: int, keys: int, width: int, mask: bool = False, together: bool = True) -> Value:
    """Softmax of the products of queries and keys, times values; with the heads beside each other if `together`."""
    q, k, v = (g.input(heads, n, width) for n in (queries, keys, keys))
    scores = product(g, q, g.op("transpose", k, perms=(0, 2, 1)))
    scores = g.op("mul", scores, np.full((1, 1, 1), 0.25, np.float32), SHIFT)
    if mask:
        scores = g.op("add", scores, g.input(1, queries, keys))
    result = product(g, softmax(g, scores), v)
    return g.op("transpose", result, perms=(1, 0, 2)) if together else result


Case = Callable[[Graph], Value]
CASES: dict[str, Case] = {
    "heads beside each other": lambda g: attention(g, 3, 40, 24, 8),
    "heads one after the other": lambda g: attention(g, 2, 40, 24, 8, together=False),
    "blocks of two sizes": lambda g: attention(g, 2, 53, 37, 5),
    "few rows": lambda g: attention(g, 2, 5, 64, 4),
    "one head": lambda g: attention(g, 1, 40, 24, 8),
    "a mask": lambda g: attention(g, 2, 36, 61, 8, mask=True),
    "rows that share sets of the cache": lambda g: attention(g, 1, 33, 512, 4),
}


def small(t: Target) -> Target:
    """A machine with caches for a few rows."""
    return replace(t, l2_bytes=1 << 11, block_bytes=1 << 12)


def kernels_of(case: Case) -> Kernels:
    g = Graph()
    module = g.module(case(g))
    return fuse(module, module.function("main"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_rows_give_the_same_results(name: str) -> None:
    kernels = kernels_of(CASES[name])
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    expected, = run(kernels, inputs)
    for t in map(small, TARGETS.values()):
        program = lower(kernels, t)
        verify_program(program)
        assert len(program.steps) == len(kernels.kernels) - 2, name
        if t.vector_bytes == 64:
            same(*run_program(program, inputs), expected, name)
        if runs_here(t):
            call = load(program, plan(program), t)
            same(np.asarray(call(*inputs)[0]), expected, name)
            call.close()


@pytest.mark.parametrize("name", ["heads beside each other", "blocks of two sizes", "one head"])
def test_parts_for_threads_give_the_bits_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every_machine_costs(monkeypatch, task_grain_cycles=100, barrier_cycles=1)
    kernels, t = kernels_of(CASES[name]), small(target("x86-64-v4"))
    inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
    whole, parts = lower(kernels, t), lower(kernels, t, threads=3)
    verify_program(parts)
    assert any(isinstance(s, Compute) and s.tasks > 1 for s in parts.steps)
    np.testing.assert_array_equal(run_program(parts, inputs)[0], run_program(whole, inputs)[0])


def test_the_scores_of_a_block_are_all_that_is_kept() -> None:
    program = lower(kernels_of(lambda g: attention(g, 4, 512, 512, 16)), target("x86-64-v4"))
    assert max(b.nbytes for b in program.temporaries) < 4 * 512 * 512 * 4 / 8


def test_a_result_that_is_needed_elsewhere_is_stored() -> None:
    def scores_too(g: Graph) -> Value:
        x = product(g, g.input(2, 40, 8), g.input(2, 8, 30))
        return g.op("add", product(g, softmax(g, x), g.input(2, 30, 30)), x)

    found = chains(kernels_of(scores_too), small(target("x86-64-v4")))
    assert all(len(c.kernels) < 3 for c in found)


def test_weights_that_each_block_would_read_again_are_not_worth_it() -> None:
    """Two layers on many rows: the weights are more than what lies between them."""
    def layers(g: Graph) -> Value:
        x, up, down = g.input(1, 64, 256), g.input(1, 256, 1024), g.input(1, 1024, 256)
        return product(g, g.op("tanh", product(g, x, up)), down)

    assert not chains(kernels_of(layers), replace(target("x86-64-v4"), l2_bytes=1 << 16, block_bytes=1 << 16))
    assert chains(kernels_of(layers), replace(target("x86-64-v4"), l2_bytes=1 << 16, block_bytes=1 << 23))


def test_small_tensors_are_stored_whole() -> None:
    assert not chains(kernels_of(CASES["one head"]), target("x86-64-v4"))
