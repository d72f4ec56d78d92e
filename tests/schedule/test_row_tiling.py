"""Kernels that run together by rows: the same results, rings instead of whole buffers, and steps that are in order."""
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
from tosaic.lowering.loops.ir import row_limit
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.row_tiling.row_access import rows_of
from tosaic.lowering.row_tiling.row_groups import BufferUses, bytes_needed
from tosaic.lowering.row_tiling.row_tiling import TiledByRows, tile_by_rows, ways
from tosaic.lowering.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv, rescale
from ..native.machines import runs_here
from .kernels import TARGETS, random_data, same

RNG = np.random.default_rng(3)
SAME = (1, 1, 1, 1)


def floats(*shape: int) -> np.ndarray:
    """Halves: sums of their products are exact in every order."""
    return (RNG.integers(-6, 7, shape) / 2).astype(np.float32)


def convolution(g: Graph, x: Value, out: int, kernel: int = 3, **window: tuple[int, ...]) -> Value:
    return conv(g, x, floats(out, kernel, kernel, x.tensor.dims[-1]), floats(out), **window)


def depthwise(g: Graph, x: Value, **window: tuple[int, ...]) -> Value:
    channels = x.tensor.dims[-1]
    return conv(g, x, floats(3, 3, channels, 1), floats(channels), name="depthwise_conv2d", **window)


def bytes_of(g: Graph, x: Value, out: int) -> Value:
    weight = RNG.integers(-127, 128, (out, 3, 3, x.tensor.dims[-1])).astype(np.int8)
    y = conv(g, x, weight, RNG.integers(-999, 999, out).astype(np.int32), 3, pad=SAME)
    return rescale(g, y, out, RNG)


def windows_of_bytes(g: Graph) -> Value:
    """A window over what a product makes, and another with a stride over what that makes."""
    x = bytes_of(g, g.input(1, 13, 9, 4, dtype="int8"), 24)
    for stride in (1, 2):
        weight = RNG.integers(-127, 128, (3, 3, 24, 1)).astype(np.int8)
        y = conv(g, x, weight, RNG.integers(-999, 999, 24).astype(np.int32), -5, "depthwise_conv2d", SAME, (stride, stride))
        x = rescale(g, y, 24, RNG)
    return x


def residual(g: Graph) -> Value:
    x = convolution(g, g.input(1, 12, 9, 4), 8, pad=SAME)
    y = depthwise(g, g.op("clamp", x, min_val=0.0, max_val=6.0), pad=SAME)
    return g.op("add", x, convolution(g, y, 8, 1))


def beside(g: Graph) -> Value:
    """A convolution and a maximum of what another makes, in steps of two rows."""
    x = convolution(g, g.input(1, 12, 8, 4), 8, pad=SAME)
    y = depthwise(g, x, stride=(2, 2), pad=(0, 1, 0, 1))
    pool = g.op("max_pool2d", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0), nan_mode="PROPAGATE")
    return g.op("add", convolution(g, y, 8, 1), pool)


def turned_over(g: Graph) -> Value:
    """The last of three convolutions is added to the rows of the first from the last to the first."""
    x = convolution(g, g.input(1, 12, 9, 4), 8, pad=SAME)
    return g.op("add", g.op("reverse", x, axis=1), convolution(g, convolution(g, x, 8, pad=SAME), 8, 1))


Case = Callable[[Graph], Value]
CASES: dict[str, Case] = {
    "two convolutions": lambda g: convolution(g, convolution(g, g.input(1, 12, 9, 4), 8, pad=SAME), 4, pad=SAME),
    "strides": lambda g: convolution(g, convolution(g, g.input(1, 15, 15, 4), 8, stride=(2, 2), pad=SAME), 4, stride=(2, 2),
                                     pad=(0, 1, 0, 1)),
    "residual": residual, "two windows over one tensor": beside,
    "turned over": turned_over,
    "bytes": lambda g: bytes_of(g, bytes_of(g, g.input(1, 12, 9, 4, dtype="int8"), 8), 4),
    "windows of bytes": windows_of_bytes,
    "batch": lambda g: convolution(g, convolution(g, g.input(3, 8, 9, 4), 8, pad=SAME), 4, pad=SAME),
    "pool": lambda g: g.op("max_pool2d", convolution(g, g.input(1, 12, 10, 4), 8, pad=SAME), kernel=(2, 2), stride=(2, 2),
                           pad=(0, 0, 0, 0)),
    "reshaped": lambda g: g.op("reduce_max", g.op("reshape", convolution(g, g.input(1, 12, 10, 4), 8, pad=SAME),
                                                  g.shape(20, 6, 8)), axis=1),
    "dilated": lambda g: convolution(g, convolution(g, g.input(1, 20, 9, 4), 8, pad=SAME), 4, dilation=(3, 3),
                                     pad=(3, 3, 3, 3)),
}


def tiny(t: Target) -> Target:
    """A machine whose cache holds next to nothing."""
    return replace(t, l2_bytes=1 << 10)


def lowered(case: Case, t: Target) -> tuple[Kernels, Program]:
    g = Graph()
    module = g.module(case(g))
    kernels = fuse(module, module.function("main"))
    return kernels, lower(kernels, t)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_kernels_by_rows_give_the_same_results(name: str) -> None:
    for t in TARGETS.values():
        kernels, program = lowered(CASES[name], tiny(t))
        verify_program(program)
        inputs = [random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in kernels.inputs]
        expected = run(kernels, inputs)
        if t.vector_bytes == 64:
            for actual, right in zip(run_program(program, inputs), expected, strict=True):
                same(actual, right, name)
        if runs_here(t):
            call = load(program, plan(program), tiny(t))
            result = call(*inputs)
            for actual, right in zip(result if isinstance(result, tuple) else (result,), expected, strict=True):
                same(np.asarray(actual), right, name)
            call.close()


def rings_of(kernels: Kernels, t: Target) -> dict[str, int]:
    """Rows of the buffers that became rings."""
    found = tile_by_rows(kernels, t).rings
    return {b.name: next(n for n, m in zip(ring.shape, b.shape) if m > 1) for b, ring in found.items()}


def test_a_tensor_between_two_convolutions_keeps_as_many_rows_as_the_window_has() -> None:
    kernels, program = lowered(CASES["two convolutions"], tiny(target("x86-64-v4")))
    assert list(rings_of(kernels, tiny(target("x86-64-v4"))).values()) == [3]
    whole = lower(kernels, target("x86-64-v4"))
    assert sum(b.nbytes for b in program.temporaries) < sum(b.nbytes for b in whole.temporaries) / 2


def test_a_tensor_that_two_windows_read_keeps_the_rows_that_both_need() -> None:
    g = Graph()
    module = g.module(beside(g))
    kernels = fuse(module, module.function("main"))
    found = rings_of(kernels, tiny(TARGETS["512 bits"]))
    assert found[kernels.kernels[0].out.name] == 3


def test_rows_read_in_reverse_are_all_kept() -> None:
    kernels, program = lowered(CASES["turned over"], tiny(target("x86-64-v4")))
    assert any(isinstance(s, Compute) and s.rows for s in program.steps)
    assert kernels.kernels[0].out.name not in rings_of(kernels, tiny(target("x86-64-v4")))


def kernels_of(make: Case) -> Kernels:
    g = Graph()
    module = g.module(make(g))
    return fuse(module, module.functions[0])


def test_rows_that_need_all_of_what_lies_before_are_not_tiled() -> None:
    def transposed(g: Graph) -> Value:
        x = convolution(g, g.input(1, 12, 12, 4), 8)
        return convolution(g, g.op("transpose", x, perms=(0, 2, 1, 3)), 4)

    assert not tile_by_rows(kernels_of(transposed), tiny(target("x86-64-v4"))).by_rows


def test_a_tensor_that_each_tile_would_read_whole_keeps_its_reader_out_of_the_tiles() -> None:
    """The first product has its columns in rows of the second: each of these needs all of x again."""
    def scores(g: Graph) -> Value:
        x = convolution(g, g.input(1, 40, 1, 64), 48, 1)
        heads = g.op("reshape", g.op("transpose", g.op("reshape", x, g.shape(40, 6, 8)), perms=(1, 2, 0)), g.shape(6, 8, 40))
        zeros = np.zeros(1, np.float32)
        return g.op("exp", g.op("matmul", g.input(6, 40, 8), heads, zeros, zeros))

    found = kernels_of(scores)
    assert len(found.kernels) == 2
    assert not tile_by_rows(found, tiny(target("x86-64-v4")), "cache").by_rows
    assert tile_by_rows(found, tiny(target("x86-64-v4")), "memory").by_rows


def test_small_tensors_are_computed_whole() -> None:
    _, program = lowered(CASES["two convolutions"], target("x86-64-v4"))
    assert program.steps == (Compute(0), Compute(1))


def needed(kernels: Kernels, way: TiledByRows, sharing: bool) -> int:
    """Bytes that a way of running takes, row by row where buffers may share bytes while both are live."""
    rows = [rows_of(k, sums_alone=False) for k in kernels.kernels] if sharing else [None] * len(kernels.kernels)
    return bytes_needed(kernels, way.steps, way.rings, BufferUses.of(kernels, False), [r and r.reads for r in rows])


def test_by_policy_kernels_run_in_turns_for_the_cache_for_memory_or_never() -> None:
    for name in CASES:
        kernels, _ = lowered(CASES[name], target("x86-64-v4"))
        for t in (target("x86-64-v4"), tiny(target("x86-64-v4"))):
            found = {rows: tile_by_rows(kernels, t, rows) for rows in ("cache", "never")}
            for sharing in (True, False):
                least = min(needed(kernels, way, sharing) for way in ways(kernels, t, "memory"))
                assert least <= min(needed(kernels, i, sharing) for i in found.values())
            assert not found["never"].by_rows and found["never"].steps == kernels.steps


def test_a_microcontroller_saves_memory_unless_told_otherwise() -> None:
    kernels, _ = lowered(CASES["two convolutions"], target("x86-64-v4"))
    large, small = (tile_by_rows(kernels, target(name)) for name in ("x86-64-v4", "cortex-m7"))
    assert small.by_rows and small.steps == tile_by_rows(kernels, target("x86-64-v4"), "memory").steps
    assert not large.by_rows and large.steps == tile_by_rows(kernels, target("cortex-m7"), "cache").steps


def test_every_row_is_computed_once_and_in_order() -> None:
    for name in CASES:
        kernels, program = lowered(CASES[name], tiny(target("x86-64-v4")))
        done = dict.fromkeys(range(len(kernels.kernels)), 0)
        for step in program.steps:
            assert isinstance(step, Compute)
            if step.rows:
                assert step.rows[0] == done[step.kernel]
                done[step.kernel] = step.rows[1]
            else:
                done[step.kernel] = next(n for n in kernels.kernels[step.kernel].out.shape if n > 1)
        assert all(done[i] == next(n for n in k.out.shape if n > 1) for i, k in enumerate(kernels.kernels))


@pytest.mark.parametrize("name", CASES)
def test_a_caller_may_ask_for_all_rows_that_there_are(name: str) -> None:
    """Though a ring buffer has fewer: what emitters take for granted about indices follows from it."""
    _, program = lowered(CASES[name], tiny(target("any")))
    for step in program.steps:
        assert isinstance(step, Compute)
        if step.rows:
            assert step.rows[1] <= row_limit(program.functions[step.kernel])
