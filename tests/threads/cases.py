"""Graphs whose kernels have all kinds of loops, and what belongs to running them in tasks."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.kernels.kernel import Compute, Kernels, Parallel, walk
from tosaic.lowering.loops.program import Program
from tosaic.lowering.schedule import lower
from tosaic.lowering.schedule.contraction import choice
from tosaic.lowering.schedule.elementwise import elementwise
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv, rescale
from ..schedule.costs import every_machine_costs

SAME = (1, 1, 1, 1)
V4 = target("x86-64-v4")
TARGETS: dict[str, Target] = {
    "512 bits, dot4": replace(V4, dot_product="u8s8", features=V4.features + ",+avx512vnni"),
    "256 bits, no masks": target("x86-64-v3"), "scalar": replace(target("x86-64"), vector_bytes=1)}
THREADS = (2, 3, 8)


@pytest.fixture
def fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is divided however little it is."""
    every_machine_costs(monkeypatch, task_grain_cycles=20, repeated_fill_cycles=30, barrier_cycles=0)
    monkeypatch.setattr(choice, "MAX_UNDIVIDED_TERMS", 0)
    monkeypatch.setattr(elementwise, "MAX_UNDIVIDED_INSTRUCTIONS", 0)


def lowered(case: Callable[[Graph], Value], t: Target, threads: int) -> tuple[Kernels, Program]:
    g = Graph()
    module = g.module(case(g))
    kernels = fuse(module, module.function("main"))
    return kernels, lower(kernels, t, threads=threads)


def most_parts(program: Program) -> int:
    return max((len(s.tasks) if isinstance(s, Parallel) else s.tasks for s in walk(program.steps)
                if isinstance(s, Compute | Parallel)), default=1)


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def convolution(g: Graph, x: Value, out: int, kernel: int = 3, **window: tuple[int, ...]) -> Value:
    return conv(g, x, floats(out, kernel, kernel, x.tensor.dims[-1]), floats(out), **window)


def depthwise(g: Graph, x: Value, **window: tuple[int, ...]) -> Value:
    channels = x.tensor.dims[-1]
    return conv(g, x, floats(3, 3, channels, 1), floats(channels), name="depthwise_conv2d", **window)


def of_bytes(g: Graph, x: Value, out: int, kernel: int = 3) -> Value:
    rng = np.random.default_rng(out)
    weight = rng.integers(-127, 128, (out, kernel, kernel, x.tensor.dims[-1])).astype(np.int8)
    y = conv(g, x, weight, rng.integers(-999, 999, out).astype(np.int32), 3, pad=SAME if kernel == 3 else (0, 0, 0, 0))
    return rescale(g, y, out, rng)


def zero_points(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(1, dtype), np.zeros(1, dtype)


def product(g: Graph, batch: int, m: int, k: int, n: int) -> Value:
    return g.op("matmul", g.input(batch, m, k), g.input(batch, k, n), *zero_points("float32"))


def softmax(g: Graph) -> Value:
    x = g.input(20, 37)
    e = g.op("exp", g.op("sub", x, g.op("reduce_max", x, axis=1)))
    return g.op("mul", e, g.op("reciprocal", g.op("reduce_sum", e, axis=1)), zero("int8"))


def zero(dtype: str) -> np.ndarray:
    return np.zeros(1, dtype)


def chain(g: Graph) -> Value:
    x = g.input(1000)
    return g.op("tanh", g.op("add", g.op("abs", x), x))


def joined(g: Graph) -> Value:
    return g.op("abs", g.op("concat", g.input(15, 131), g.input(29, 131), g.input(14, 131), axis=0))


CASES: dict[str, Callable[[Graph], Value]] = {
    "convolution": lambda g: convolution(g, g.input(1, 9, 10, 5), 24, pad=SAME),
    "convolution with a stride": lambda g: convolution(g, g.input(2, 9, 11, 5), 24, stride=(2, 2), pad=SAME),
    "convolution of a wide border": lambda g: convolution(g, g.input(1, 6, 5, 4), 20, 1, pad=(9, 8, 9, 8)),
    "pointwise": lambda g: convolution(g, g.input(1, 7, 7, 20), 40, 1),
    "window": lambda g: depthwise(g, g.input(1, 12, 13, 20), pad=SAME),
    "bytes": lambda g: of_bytes(g, g.input(1, 8, 9, 12, dtype="int8"), 40),
    "pointwise bytes": lambda g: of_bytes(g, g.input(1, 8, 9, 24, dtype="int8"), 40, 1),
    "product": lambda g: product(g, 1, 45, 30, 70),
    "batch of products": lambda g: product(g, 6, 20, 8, 20),
    "gemv": lambda g: convolution(g, g.input(1, 1, 1, 64), 300, 1),
    "map": chain,
    "concatenation": joined,
    "transpose": lambda g: g.op("transpose", g.input(5, 34, 36), perms=(0, 2, 1)),
    "reduction": lambda g: g.op("reduce_sum", g.input(30, 40), axis=1),
    "softmax": softmax,
    "pool": lambda g: g.op("max_pool2d", g.input(1, 12, 12, 20), kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0)),
    "gather": lambda g: g.op("gather", g.input(1, 30, 40), g.constant(np.arange(29, -1, -2, dtype=np.int32)[None])),
}
