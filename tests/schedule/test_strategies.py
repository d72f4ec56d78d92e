"""The strategies: for each a kernel that it recognises, as one line; its other ways print as others, and all of them cost
something. So a reader sees what each is for."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load, apply, reduce
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.schedule.contraction.contraction_strategies import MICRO_KERNELS, ContractionStrategy
from tosaic.lowering.schedule.contraction.padded_input import PaddedInput
from tosaic.lowering.schedule.schedule import strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.schedule.search_space import alternatives
from tosaic.lowering.schedule.strategies import KERNEL_STRATEGIES, STRATEGIES
from tosaic.lowering.schedule.strategy import Strategy
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv
from . import test_gemv
from .kernels import TARGETS, V4
from .test_choices import product
from .test_column_reduction import sums
from .test_schedule_text import AMX

I, J = Axis("i", 40), Axis("j", 64)
VNNI = TARGETS["512 bits, dot4"]


def map_of(value: Callable[[Affine, Affine], Load]) -> Kernel:
    return Kernel(Buffer("y", "float32", (40, 64), "result"), (I, J), value(Affine.of(I), Affine.of(J)))


def softmax() -> Kernel:
    k = Axis("k", 64)
    x = Buffer("x", "float32", (40, 64), "argument")
    total = reduce("add", (k,), Load(x, (Affine.of(I), Affine.of(k))))
    return Kernel(Buffer("y", "float32", (40, 64), "result"), (I, J), Load(x, (Affine.of(I), Affine.of(J))) * total)


def of_graph(make: Callable[[Graph], object]) -> Kernel:
    g = Graph()
    module = g.module(make(g))  # type: ignore[arg-type]
    kernel, = fuse(module, module.function("main")).kernels
    return kernel


def convolution(g: Graph) -> object:
    return conv(g, g.input(1, 9, 11, 5), np.full((7, 3, 3, 5), 0.5, np.float32), np.zeros(7, np.float32), pad=(1, 1, 1, 1))


def deep_convolution(g: Graph) -> object:
    return conv(g, g.input(1, 16, 16, 32), np.full((32, 3, 3, 32), 0.5, np.float32), np.zeros(32, np.float32), pad=(1, 1, 1, 1))


def of_bytes(g: Graph) -> object:
    return conv(g, g.input(1, 8, 8, 16, dtype="int8"), np.full((8, 3, 3, 16), 30, np.int8), np.zeros(8, np.int32), 2, "conv2d",
                (1, 1, 1, 1))


def depthwise(g: Graph) -> object:
    return conv(g, g.input(1, 8, 8, 16, dtype="int8"), np.full((3, 3, 16, 1), 3, np.int8), np.zeros(16, np.int32), 2,
                "depthwise_conv2d", (1, 1, 1, 1))


def pool(g: Graph) -> object:
    return g.op("max_pool2d", g.input(1, 12, 12, 24), kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))


def fourier() -> Kernel:
    g = Graph()
    parts = g.ops("fft2d", g.input(1, 16, 32), g.input(1, 16, 32), inverse=False, local_bound=False)
    module = rewritten(g.module(*parts))
    return fuse(module, module.function("main")).kernels[0]


X = Buffer("x", "float32", (40, 64), "argument")
T = Buffer("x", "float32", (64, 40), "argument")
CASES: dict[str, tuple[type | str, Callable[[], Kernel], ScheduleRequest, str]] = {
    "row reduction": (STRATEGIES[0], softmax, ScheduleRequest(V4), "row reduction: 2 passes, vectors of 16 along a row"),
    "contraction of floats": ("vectors", lambda: product(140, 64, 32), ScheduleRequest(V4), "contraction: fma, tiles of "),
    "contraction of bytes, VNNI": ("dot4", lambda: product(140, 64, 32, "int8"), ScheduleRequest(VNNI),
                                   "contraction: dot4, "),
    "contraction of bytes, PMADDWD": ("dot2", lambda: product(140, 64, 32, "int8"), ScheduleRequest(V4),
                                      "contraction: dot2, tiles of "),
    "contraction of bytes, SMLAD": ("dual", lambda: of_graph(of_bytes), ScheduleRequest(target("cortex-m4")),
                                    "contraction: pairs, tiles of 2 rows by 2 vectors of 1"),
    "contraction of bytes, VMLADAVA": ("dot", lambda: of_graph(of_bytes), ScheduleRequest(target("cortex-m55")),
                                       "contraction: dot, tiles of 3 rows by 2 vectors of 1"),
    "contraction of bytes, SDOT": ("dot4", lambda: of_graph(of_bytes), ScheduleRequest(target("cortex-a76")),
                                   "contraction: dot4, tiles of 7 rows by 3 vectors of 4"),
    "contraction of bytes, SMMLA": ("dot8", lambda: of_graph(of_bytes), ScheduleRequest(target("neoverse-v1")),
                                    "contraction: dot8, tiles of 8 rows by 2 vectors of 4"),
    "contraction of bytes, VWMACC": ("widen", lambda: of_graph(of_bytes), ScheduleRequest(target("rv64gcv")),
                                     "contraction: widen, tiles of 6 rows by 1 vectors of 16"),
    "contraction of bytes, AMX": ("tiles", lambda: product(256, 256, 256, "int8"), ScheduleRequest(AMX), "tiles, "),
    "contraction of limbs, AMX": ("limbs", lambda: product(256, 256, 256), ScheduleRequest(AMX, "bf16x6"), "bf16x6, "),
    "column reduction": (STRATEGIES[2], lambda: sums(29, 64), ScheduleRequest(replace(V4, l2_bytes=1 << 10)),
                         "column reduction: 8 rows of 64 by 2 vectors of 16"),
    "gemv": (STRATEGIES[3], lambda: test_gemv.product(16, 64), ScheduleRequest(V4),
             "gemv: 8 rows, 2 vectors of 16 terms"),
    "window of bytes": (STRATEGIES[4], lambda: of_graph(depthwise), ScheduleRequest(VNNI), "window: dot4, tiles of "),
    "window": (STRATEGIES[5], lambda: of_graph(pool), ScheduleRequest(V4), "window: tiles of "),
    "transpose": (STRATEGIES[6], lambda: map_of(lambda i, j: Load(T, (j, i))), ScheduleRequest(V4),
                  "transpose: blocks of 4 by 4, axis 0 is contiguous in the source"),
    "elementwise": (STRATEGIES[7], lambda: map_of(lambda i, j: apply("add", *[Load(X, (i, j))] * 2)), ScheduleRequest(V4),  # type: ignore[arg-type,return-value]
                    "elementwise: 4 vectors of 16"),
    "Fourier transform": (KERNEL_STRATEGIES[0], fourier, ScheduleRequest(V4), "Fourier transform of 16 by 32: vectors of 16"),
    "minimal filter": (KERNEL_STRATEGIES[1], lambda: of_graph(deep_convolution), ScheduleRequest(V4, "winograd"),
                       "Winograd F(4, 3): "),
    "padded input": (PaddedInput, lambda: of_graph(convolution), ScheduleRequest(V4), "of a padded copy: float32[1, 9, 13, 5]"),
}


def kind_of(strategy: Strategy) -> type | str:
    """Its class; of a contraction the micro-kernel."""
    return strategy.micro_kernel if isinstance(strategy, ContractionStrategy) else type(strategy)


def found(case: str) -> Strategy:
    _, kernel, request, _ = CASES[case]
    strategy, = strategies_of(kernel(), request)
    return strategy


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_of_its_pattern_has_the_strategy(case: str) -> None:
    kind, _, _, text = CASES[case]
    strategy = found(case)
    assert kind_of(strategy) == kind and text in str(strategy)


def test_each_strategy_has_a_case() -> None:
    shown = {kind for kind, _, _, _ in CASES.values()}
    every = {*STRATEGIES, *KERNEL_STRATEGIES} - {ContractionStrategy} | set(MICRO_KERNELS)
    assert shown == every


@pytest.mark.parametrize("case", CASES)
def test_other_ways_print_as_others_and_all_cost_something(case: str) -> None:
    ways = alternatives(found(case))
    assert len({str(way) for way in ways}) == len(ways)
    for way in ways:
        assert isinstance(way, type(ways[0])) and way.nest is ways[0].nest
        assert way.cost() > way.nest.out.size / 64


def test_a_cost_is_that_of_the_loops() -> None:
    """Twice the rows take about twice as long."""
    one, two = (strategies_of(product(m, 64, 32), ScheduleRequest(V4))[0].cost() for m in (140, 280))
    assert 1.8 < two / one < 2.2


def test_a_target_without_the_unit_has_another_strategy() -> None:
    machine: Target = replace(AMX, matrix_unit=())
    strategy, = strategies_of(product(256, 256, 256, "int8"), ScheduleRequest(machine))
    assert kind_of(strategy) == "dot4"
    b = Builder("y")
    strategy.lower(b, None)
    assert b.finish().body
