"""Products of bytes and of floats on the instruction sets that an emulator runs: graphs of any sizes, padding and zero points,
with hostile values, compiled for a machine and run on it, have the interpreter's numbers.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import save
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.graph.graph import Function, Module, Value
from tosaic.lowering.graph.types import F16, F32, I8, I32, Array, TensorType
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

from ..native.machines import runs_here
from .callers import Caller
from .machines import Machine, linux, needs

GRAPHS = 4
"""Of each kind, for a machine."""
ARM = ("aarch64-linux-gnu-gcc", "", "qemu-aarch64", "-cpu", "max")
RISCV = ("riscv64-linux-gnu-gcc", "", "qemu-riscv64", "-cpu")
MACHINES = (
    linux("aarch64", *ARM), linux("cortex-a55", *ARM), linux("neoverse-v1", *ARM),
    linux("rv64gc", *RISCV, "rv64,v=false"),
    linux("rv64gcv", *RISCV, "rv64,v=true,vlen=128,vext_spec=v1.0"),
    linux("rv64gcv", *RISCV, "rv64,v=true,vlen=256,vext_spec=v1.0"),
    linux("rv64gcv_zvl256b", *RISCV, "rv64,v=true,vlen=256,vext_spec=v1.0"),
    *(linux(name, "gcc", "") for name in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4") if runs_here(tosaic.target(name))))
Rng = np.random.Generator


def extremes(g: Rng, shape: tuple[int, ...], least: int = -128) -> Array:
    """Bytes, half of them the least or the largest."""
    values = g.integers(least, 128, shape)
    return np.where(g.random(shape) < 0.5, g.choice([least, 127], shape), values).astype(np.int8)


def zero_point(g: Rng) -> Array:
    return np.array([g.choice([-128, -5, 0, 3, 127])], np.int8)


def window(g: Rng) -> tuple[tuple[int, int], tuple[int, int], dict[str, tuple[int, ...]]]:
    """Kernel, size, and attributes of a window that fits."""
    kernel, stride, dilation = (tuple(int(k) for k in g.integers(1, high, 2)) for high in (4, 3, 3))
    pad, size = [int(p) for p in g.integers(0, 2, 4)], [0, 0]
    for i in range(2):
        reach = (kernel[i] - 1) * dilation[i] + 1
        size[i] = max(1, reach - pad[2 * i] - pad[2 * i + 1]) + int(g.integers(0, 9))
        pad[2 * i + 1] += -(size[i] + pad[2 * i] + pad[2 * i + 1] - reach) % stride[i]
    return (kernel[0], kernel[1]), (size[0], size[1]), {"pad": tuple(pad), "stride": stride, "dilation": dilation}


def rescaled(g: Rng, e: Emitter, sums: Value, channels: int) -> Value:
    """Sums as bytes, by factors that make them large and small."""
    multiplier = e.constant(g.integers(1 << 30, (1 << 31) - 1, channels).astype(np.int32))
    shift = e.constant(g.integers(36, 46, channels).astype(np.int8))
    return e("rescale", sums, multiplier, shift, e.constant(np.zeros(1, np.int32)), e.constant(zero_point(g)), scale32=True,
             rounding_mode=str(g.choice(["SINGLE_ROUND", "DOUBLE_ROUND"])), per_channel=True, input_unsigned=False,
             output_unsigned=False, to=I8)


def convolution(g: Rng, e: Emitter) -> Value:
    channels, outputs = int(g.choice([1, 3, 4, 16, 20, 32])), int(g.choice([1, 5, 8, 16, 23]))
    kernel, size, attributes = window(g)
    x = e.blocks[0].argument(TensorType((int(g.integers(1, 3)), *size, channels), I8), "x")
    weights = e.constant(extremes(g, (outputs, *kernel, channels), -127))
    bias = e.constant(g.integers(-1 << 20, 1 << 20, outputs).astype(np.int32))
    return rescaled(g, e, e("conv2d", x, weights, bias, e.constant(zero_point(g)), e.constant(np.zeros(1, np.int8)),
                            acc_type=I32, **attributes), outputs)


def first_layer(g: Rng, e: Emitter) -> Value:
    """A convolution of few channels, of so many outputs that lines of its input are copied."""
    channels, outputs, kernel = int(g.integers(1, 5)), int(g.choice([5, 8, 16])), tuple(int(k) for k in g.integers(2, 6, 2))
    stride, size = int(g.integers(1, 3)), tuple(int(n) for n in g.integers(8, 24, 2))
    after = [k // 2 + -(n + k // 2 * 2 - k) % stride for n, k in zip(size, kernel)]
    x = e.blocks[0].argument(TensorType((1, *size, channels), I8), "x")
    weights = e.constant(extremes(g, (outputs, *kernel, channels), -127))
    bias = e.constant(g.integers(-1 << 20, 1 << 20, outputs).astype(np.int32))
    pad = (kernel[0] // 2, after[0], kernel[1] // 2, after[1])
    return rescaled(g, e, e("conv2d", x, weights, bias, e.constant(zero_point(g)), e.constant(np.zeros(1, np.int8)),
                            acc_type=I32, pad=pad, stride=(stride, stride), dilation=(1, 1)), outputs)


def depthwise(g: Rng, e: Emitter) -> Value:
    channels = int(g.choice([3, 8, 16, 24, 40]))
    kernel, size, attributes = window(g)
    x = e.blocks[0].argument(TensorType((1, *size, channels), I8), "x")
    weights, bias = e.constant(extremes(g, (*kernel, channels, 1), -127)), e.constant(np.arange(channels, dtype=np.int32))
    return rescaled(g, e, e("depthwise_conv2d", x, weights, bias, e.constant(zero_point(g)), e.constant(np.zeros(1, np.int8)),
                            acc_type=I32, **attributes), channels)


def product(g: Rng, e: Emitter) -> Value:
    """Of two inputs, with zero points of both."""
    rows, depth, columns = (int(n) for n in g.integers(1, 40, 3))
    a, b = (e.blocks[0].argument(TensorType((2, *shape), I8), name)
            for name, shape in (("a", (rows, depth)), ("b", (depth, columns))))
    return e("matmul", a, b, e.constant(zero_point(g)), e.constant(zero_point(g)))


def floats(g: Rng, e: Emitter) -> Value:
    """Of whole numbers, so that all sums are exact."""
    rows, depth, columns = (int(n) for n in g.integers(1, 40, 3))
    a = e.blocks[0].argument(TensorType((1, rows, depth), F32), "a")
    b = e.constant(g.integers(-9, 10, (1, depth, columns)).astype(np.float32))
    zero = e.constant(np.zeros(1, np.float32))
    return e("matmul", a, b, zero, zero)


def halves(g: Rng, e: Emitter) -> Value:
    """A chain of float16, each rounded; of numbers of which no NaN comes, some of them so large that infinity does. No two are
    zeros, of which it is not said which one is larger."""
    shape = tuple(int(n) for n in g.integers(1, 40, 2))
    a, b = (e.blocks[0].argument(TensorType(shape, F16), name) for name in "ab")
    one, shift = e.constant(np.full((1, 1), 0.3333, np.float16)), e.constant(np.zeros(1, np.int8))
    some: tuple[Callable[[Value], Value], ...] = (
        lambda x: e("add", x, a), lambda x: e("sub", x, a), lambda x: e("mul", x, one, shift),
        lambda x: e("maximum", x, b), lambda x: e("minimum", x, b), lambda x: e("abs", x),
        lambda x: e("clamp", x, min_val=-7.5, max_val=60000.0), lambda x: e("reciprocal", e("maximum", x, one)))
    value = e("mul", a, b, shift)
    for number in g.integers(0, len(some), 5):
        value = some[number](value)
    return value


KINDS: tuple[Callable[[Rng, Emitter], Value], ...] = (convolution, first_layer, depthwise, product, floats, halves)


def module() -> Module:
    functions = []
    for number in range(GRAPHS * len(KINDS)):
        g, e = np.random.default_rng(number), Emitter()
        y = KINDS[number % len(KINDS)](g, e)
        functions.append(Function(f"f{number}", e.blocks[0].finish(y), (y.type,)))
    return Module(tuple(functions))


def values(g: Rng, type: TensorType) -> Array:
    if type.element is F16:  # sums of two are numbers, products may be infinite
        return np.where(g.random(type.dims) < 0.2, g.choice([6e-8, 30000.0, -6e-5], type.dims), g.normal(
            0, 10, type.dims)).astype(np.float16)
    return extremes(g, type.dims) if type.element is I8 else g.integers(-9, 10, type.dims).astype(np.float32)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name + "".join(m.runner[3:])) for m in MACHINES])
def test_sums_of_products_are_those_of_the_interpreter(machine: Machine, tmp_path: Path) -> None:
    whole, options = module(), tosaic.CompileOptions(tosaic.target(machine.target))
    lowered = [Traced(whole, f.name).lower(options) for f in whole.functions]
    calls, wanted = [], []
    for number, f in enumerate(whole.functions):
        g = np.random.default_rng(number)
        inputs = [values(g, a.tensor) for a in f.arguments]
        calls.append((number, inputs))
        wanted += [y.tobytes().hex() for y in Interpreter(whole, f.name, InterpreterVariables())(*inputs)]
    artifact = save(lowered, tmp_path, "sums")
    (tmp_path / "main.c").write_text(Caller(lowered, artifact).source(calls))
    found = machine.run(machine.build(tmp_path, [tmp_path / "main.c", artifact.object])).split()
    different = [f.name for f, x, y in zip(whole.functions, found, wanted, strict=True) if x != y]
    assert not different
