"""Groups of kernels that are no chain, tiled by rows where memory counts: no tensor between two kernels is whole because of
what stands between them, or of a kernel without a sum.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tosaic import CompileOptions
from tosaic.jit.stages import Traced
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.kernels.interpret import run
from tosaic.lowering.kernels.kernel import Compute, Kernels
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.row_tiling.connected_kernels import gathered
from tosaic.lowering.row_tiling.row_access import rows_of
from tosaic.lowering.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import interpret

from ..fuse.graphs import Graph
from .test_row_tiling import convolution, depthwise

HOST = target("host")
SAME, HALF = (1, 1, 1, 1), (0, 1, 0, 1)


def kernels_of(make: Callable[[Graph], object]) -> Kernels:
    g = Graph()
    results = make(g)
    module = g.module(*results) if isinstance(results, tuple) else g.module(results)  # type: ignore[arg-type]
    return fuse(module, module.function("main"))


def shortcut(g: Graph) -> object:
    """A wide tensor beside a path that pools what it is made of."""
    x = convolution(g, g.input(1, 32, 16, 3), 4, pad=SAME)
    wide = convolution(g, x, 32, 1)
    pooled = g.op("max_pool2d", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0), nan_mode="PROPAGATE")
    narrow = convolution(g, depthwise(g, wide, pad=HALF, stride=(2, 2)), 4, 1)
    return convolution(g, g.op("add", narrow, pooled), 4, pad=HALF, stride=(2, 2))


def heads(g: Graph) -> object:
    """A result of another branch between the kernels of one."""
    x = convolution(g, g.input(1, 32, 16, 3), 4, pad=HALF, stride=(2, 2))
    wide = convolution(g, x, 64, 1)
    other = convolution(g, convolution(g, x, 4, pad=HALF, stride=(2, 2)), 2, pad=HALF, stride=(2, 2))
    return convolution(g, depthwise(g, wide, pad=HALF, stride=(2, 2)), 4, 1), other


CASES = {"shortcut": shortcut, "heads": heads}


@pytest.mark.parametrize("name", CASES)
def test_no_large_tensor_between_two_kernels_is_whole(name: str) -> None:
    kernels = kernels_of(CASES[name])
    wide = max((k.out for k in kernels.kernels), key=lambda b: b.nbytes)
    program = lower(kernels, HOST, "memory")
    assert all(b.nbytes * 4 < wide.nbytes for b in program.temporaries) and plan(program).size_bytes * 4 < wide.nbytes
    data = (np.random.default_rng(3).integers(-6, 7, kernels.inputs[0].shape) / 2).astype(np.float32)
    for memory in (Memory(), Memory(overlap=False)):
        found = load(program, plan(program, memory), HOST)(data)
        for one, other in zip(found, run(kernels, [data])):
            assert np.array_equal(one, other)


def test_a_fourier_transform_is_computed_as_a_whole() -> None:
    """Its loops are quicker than the sums of its rows, and know no rings."""
    g = Graph()
    real, imaginary = g.ops("rfft2d", g.input(3, 8, 8), local_bound=False)
    module = g.module(g.op("sub", real, g.op("reverse", imaginary, axis=2)), g.op("abs", imaginary))
    lowered = Traced(module, "main").lower(CompileOptions(replace(HOST, has_cache=False)))
    data = np.random.default_rng(3).standard_normal((3, 8, 8)).astype(np.float32)
    for one, other in zip(lowered.compile()(data), interpret(module, module.function("main"), [data])):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-4)


def test_kernels_between_others_run_before_them() -> None:
    """Those that read something of the group stay behind it."""
    kernels = kernels_of(heads)
    found = [rows_of(k, sums_alone=False) for k in kernels.kernels]
    outs = [k.out for k in kernels.kernels]
    order = [s.kernel for s in gathered(kernels, found).steps if isinstance(s, Compute)]
    assert sorted(order) == list(range(len(outs)))
    for place, number in enumerate(order):
        for b in {x for x in outs if any(x is y for y in reads(kernels, number))}:
            assert order.index(outs.index(b)) < place


def reads(kernels: Kernels, number: int) -> list[object]:
    from tosaic.lowering.elements.traverse import loads
    return [x.buffer for x in loads(kernels.kernels[number].value)]
