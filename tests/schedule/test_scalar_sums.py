"""Products of bytes whose sum over a whole vector goes to a register (Helium's VMLADAVA): what their loops mean, and which
contractions are done so."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic import CompileOptions
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Function, Module
from tosaic.lowering.graph.types import I8, I32, TensorType
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.ir import Let, walk
from tosaic.lowering.loops.verify import verify, verify_program
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.schedule import lower, schedule
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import Interpreter

from .kernels import buffers_of, interpreted, meaning, random_data, same
from .test_dual_multiply import convolution, extremes
from .test_int8_contraction import product as matrices

M55 = target("cortex-m55")


@pytest.mark.parametrize("seed", range(16))
def test_sums_are_those_of_the_interpreter(seed: int) -> None:
    """Of convolutions and products of any sizes, with borders or none."""
    module = convolution(seed)
    x = extremes(np.random.default_rng(seed), module.functions[0].arguments[0].tensor.dims)
    whole = rewritten(module)
    program = lower(fuse(whole, whole.function("f")), M55)
    verify_program(program)
    (wanted,) = Interpreter(module)(x)
    np.testing.assert_array_equal(run_program(program, [x])[0], wanted)


def product(rows: int, depth: int, columns: int, seed: int = 0, zero: int = 3) -> Module:
    """A product of matrices with constants."""
    g, e = np.random.default_rng(seed), Emitter()
    x = e.blocks[0].argument(TensorType((1, rows, 1, depth), I8), "x")
    weights = e.constant(extremes(g, (columns, 1, 1, depth), -127))
    bias = e.constant(g.integers(-1 << 20, 1 << 20, columns).astype(np.int32))
    y = e("conv2d", x, weights, bias, e.constant(np.array([zero], np.int8)), e.constant(np.zeros(1, np.int8)), pad=(0, 0, 0, 0),
          stride=(1, 1), dilation=(1, 1), acc_type=I32)
    return Module((Function("f", e.blocks[0].finish(y), (y.type,)),))


@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 64, 130), (1, 8, 7), (7, 48, 66), (2, 80, 2), (5, 33, 3)])
def test_many_columns_and_any_depth(rows: int, depth: int, columns: int) -> None:
    """Sums of more columns than wait at a time, K that is no multiple of a vector."""
    module = product(rows, depth, columns)
    x = extremes(np.random.default_rng(1), (1, rows, 1, depth))
    lowered = Traced(module, "f").lower(CompileOptions(M55))
    assert "contraction: dot" in lowered.show("schedule")
    np.testing.assert_array_equal(run_program(lowered.program, [x])[0], Interpreter(module)(x)[0])


@pytest.mark.parametrize(("rows", "columns", "depth"), [(7, 5, 32), (4, 6, 21)])
def test_bytes_without_a_sign_are_packed_with_one(rows: int, columns: int, depth: int) -> None:
    kernel = matrices(rows, columns, depth, "uint8", (200, 0), True)
    f = schedule(kernel, M55)
    verify(f)
    assert any(isinstance(s, Let) and s.op == "dot" for s in walk(f.body))
    data = {b: random_data(b.shape, b.dtype, np.random.default_rng(2)) for b in buffers_of(kernel)}
    same(interpreted(f, kernel, data), meaning(kernel, data), "unsigned")


@pytest.mark.parametrize(("name", "is_dot"), [("cortex-m55", True), ("cortex-m85", True), ("cortex-m33", False),
                                              ("aarch64", False), ("x86-64-v3", False)])
def test_processors_with_helium_use_it(name: str, is_dot: bool) -> None:
    schedule = Traced(product(4, 32, 8), "f").lower(CompileOptions(target(name))).show("schedule")
    assert ("contraction: dot," in schedule) == is_dot
