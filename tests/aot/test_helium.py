"""Vectors of a Cortex-M55 (Helium): convolutions, products, pools and sums of hostile bytes give there what the interpreter
gives; and their code has the instructions that this is about. Floats of 32 bits stay out of vectors, which flush subnormal
numbers of these.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import save
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.graph import Module, Value
from tosaic.lowering.graph.types import I8, I32
from tosaic.lowering.schedule.strategy import Weights
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import Interpreter

from ..fuse.graphs import Graph, conv, module
from ..table.signatures import replayed
from .callers import Caller
from .machines import PROCESSORS, Machine, needs

CASES_RUN_ON = "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc"
M55 = next(m for m in PROCESSORS if m.name == "cortex-m55")
RANDOM = np.random.default_rng(21)
Build = Callable[[Graph], Value]


def extremes(shape: tuple[int, ...], low: int = -128) -> np.ndarray:
    """Bytes, half of them the least or the largest."""
    some = RANDOM.integers(low, 128, shape)
    return np.where(RANDOM.random(shape) < 0.5, RANDOM.choice([low, 127], shape), some).astype(np.int8)


def rescaled(g: Graph, x: Value, channels: int, mode: str) -> Value:
    multiplier, shift = RANDOM.integers(1 << 30, 1 << 31, channels).astype(np.int32), RANDOM.integers(38, 44, channels)
    zero = np.zeros(1, np.int32)
    return g.op("rescale", x, multiplier, shift.astype(np.int8), zero, np.array([-9], np.int8), scale32=True,
                rounding_mode=mode, per_channel=channels > 1, input_unsigned=False, output_unsigned=False, to=I8)


def window(shape: tuple[int, int, int], out: int, size: int, mode: str = "DOUBLE_ROUND", name: str = "conv2d",
           **how: tuple[int, ...]) -> Build:
    """A convolution of bytes with a rescaling."""
    def build(g: Graph) -> Value:
        weights = (size, size, shape[2], 1) if name == "depthwise_conv2d" else (out, size, size, shape[2])
        x = conv(g, g.input(1, *shape, dtype="int8"), extremes(weights, -127),
                 RANDOM.integers(-1 << 20, 1 << 20, out).astype(np.int32), -128, name, **how)
        return rescaled(g, x, out, mode)
    return build


def pool(name: str, channels: int) -> Build:
    zeros = () if name == "max_pool2d" else (np.array([3], np.int8), np.array([-4], np.int8))
    more = {} if name == "max_pool2d" else {"acc_type": I32}
    return lambda g: g.op(name, g.input(1, 5, 6, channels, dtype="int8"), *zeros, kernel=(3, 2), stride=(1, 2),
                          pad=(1, 1, 0, 0), **more)


def floats(*names: str) -> Build:
    def build(g: Graph) -> Value:
        x = g.input(3, 7)
        for name in names:
            x = g.op(name, x)
        return g.op("reduce_sum", x, axis=1)
    return build


def product(rows: int, depth: int, columns: int) -> Build:
    return lambda g: conv(g, g.input(1, rows, 1, depth), RANDOM.standard_normal((columns, 1, 1, depth)).astype(np.float32),
                          RANDOM.standard_normal(columns).astype(np.float32))


SAME = {"pad": (1, 1, 1, 1)}
CASES: dict[str, Build] = {
    "1x1": window((5, 5, 32), 10, 1), "1x1 of 8": window((3, 7, 8), 7, 1, "SINGLE_ROUND"), "one row": window((1, 1, 80), 70, 1),
    "3x3": window((6, 7, 16), 6, 3, **SAME), "3x3 of 3": window((8, 8, 3), 9, 3, pad=(0, 1, 0, 1), stride=(2, 2)),
    "dilated": window((7, 7, 5), 4, 3, pad=(2, 2, 2, 2), dilation=(2, 2)),
    "depthwise": window((5, 6, 12), 12, 3, name="depthwise_conv2d", **SAME),
    "depthwise of 7": window((6, 6, 7), 7, 3, "SINGLE_ROUND", "depthwise_conv2d", pad=(0, 1, 0, 1), stride=(2, 2)),
    "largest": pool("max_pool2d", 20), "mean": pool("avg_pool2d", 9), "product of floats": product(5, 19, 11),
    "functions": floats("exp", "tanh", "floor"), "roots": floats("abs", "log"),
}


def every_case() -> Module:
    made = {}
    for number, build in enumerate(CASES.values()):
        g = Graph()
        made[f"f{number}"] = g.finish(build(g))
    return module(made)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("machine", "weights"), [
    pytest.param(m, weights, id=f"{m.name}, {weights}", marks=needs(m)) for m in PROCESSORS
    if m.name in CASES_RUN_ON for weights in {"cortex-m4": ("int8", "int16")}.get(m.name, ("int8",))])
def test_each_case_gives_what_the_interpreter_gives(machine: Machine, weights: Weights, tmp_path: Path) -> None:
    """On a Cortex-M4 by pairs of 16 bits, on the others without vectors one product at a time."""
    whole = every_case()
    names = [f.name for f in whole.functions]
    lowered = [Traced(whole, name).lower(tosaic.CompileOptions(target(machine.name), weights=weights)) for name in names]
    artifact = save(lowered, tmp_path, "cases")
    calls = []
    for number, entry in enumerate(lowered):
        for _ in range(2):
            calls.append((number, [extremes(tuple(x.shape)) if x.dtype == "int8" else (RANDOM.integers(
                -8, 9, x.shape)).astype(x.dtype) for x in entry.program.inputs]))
    source = Caller(lowered, artifact).source(calls)
    (tmp_path / "main.c").write_text(source)
    printed = machine.run(machine.build(tmp_path, [tmp_path / "main.c", artifact.object])).splitlines()
    for (number, inputs), line in zip(calls, printed, strict=True):
        (expected,) = Interpreter(whole, names[number])(*inputs)
        found = np.frombuffer(bytes.fromhex(line), expected.dtype).reshape(expected.shape)
        if expected.dtype == np.float32:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=list(CASES)[number])
        else:
            np.testing.assert_array_equal(found, expected, err_msg=list(CASES)[number])


@pytest.mark.parametrize(("case", "mnemonics"), [
    ("1x1", {"vmlava.s8", "vqrdmulh.s32", "vrshl.s32", "le"}), ("1x1 of 8", {"vmulh.s32"}),
    ("depthwise", {"vmul.i32", "vqrdmulh.s32"})])
def test_code_has_the_instructions(case: str, mnemonics: set[str]) -> None:
    g = Graph()
    lowered = Traced(g.module(CASES[case](g)), "main").lower(tosaic.CompileOptions(target("cortex-m55")))
    assert mnemonics <= {word for line in lowered.show("asm").splitlines() for word in line.split()}


@needs(M55)
def test_subnormal_numbers_and_nan_stay(tmp_path: Path) -> None:
    """Of floats that are added, compared and taken functions of."""
    g = Graph()
    x, y = g.input(2, 19), g.input(2, 19)
    results = g.op("add", x, y), g.op("sigmoid", x), g.op("greater", x, y), g.op("maximum", x, y, nan_mode="PROPAGATE")
    whole = g.module(*results)
    hostile = np.array([1e-45, -1e-45, 1e-38, -1e-39, np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    arrays = [RANDOM.choice(hostile, (2, 19)) for _ in range(2)]
    lowered = Traced(whole, "main").lower(tosaic.CompileOptions(target("cortex-m55")))
    artifact = save([lowered], tmp_path, "floats")
    (tmp_path / "main.c").write_text(Caller([lowered], artifact).source([(0, arrays)]))
    printed = M55.run(M55.build(tmp_path, [tmp_path / "main.c", artifact.object])).splitlines()
    for line, expected in zip(printed, Interpreter(whole, "main")(*arrays), strict=True):
        found = np.frombuffer(bytes.fromhex(line), expected.dtype).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0)


@needs(M55)
def test_arithmetic_of_float16_in_vectors_keeps_subnormal_numbers(tmp_path: Path) -> None:
    """Every pair of hostile numbers, each operation rounded once, to the bit; NaN where there is NaN."""
    hostile = np.array([6e-8, -6e-8, 1e-5, -6.1e-5, 6.11e-5, 0.3333, -1.0, 3.0, 2049.0, -65504.0, 65504.0, np.inf, -np.inf,
                        np.nan], np.float16)
    x, y = (a.reshape(4, -1) for a in np.meshgrid(hostile, hostile))
    g = Graph()
    a, b = (g.input(*x.shape, dtype="float16") for _ in "ab")
    shift = np.zeros(1, np.int8)
    results = (g.op("add", a, b), g.op("sub", a, b), g.op("mul", a, b, shift), g.op("maximum", a, b, nan_mode="PROPAGATE"),
               g.op("minimum", a, b, nan_mode="IGNORE"), g.op("abs", a), g.op("mul", g.op("add", a, b), b, shift))
    whole = g.module(*results)
    lowered = Traced(whole, "main").lower(tosaic.CompileOptions(target("cortex-m55")))
    assert {"vadd.f16", "vsub.f16", "vmul.f16"} <= {word for word in lowered.show("asm").split()}
    artifact = save([lowered], tmp_path, "halves")
    (tmp_path / "main.c").write_text(Caller([lowered], artifact).source([(0, [x, y])]))
    printed = M55.run(M55.build(tmp_path, [tmp_path / "main.c", artifact.object])).splitlines()
    for line, expected in zip(printed, Interpreter(whole, "main")(x, y), strict=True):
        found = np.frombuffer(bytes.fromhex(line), np.float16).reshape(expected.shape)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        bits = [np.where(np.isnan(expected), np.float16(0), v).view(np.uint16) for v in (found, expected)]
        np.testing.assert_array_equal(*bits)


@pytest.mark.parametrize("name", ["matmul_t_block_scaled:mxint8>f32:3", "conv2d_block_scaled:f4E2M1FN>f32:3"])
def test_loads_from_anywhere_are_compiled(name: str) -> None:
    """By indices that are constants, of which LLVM's pass for them makes a failed assertion."""
    lowered = Traced(replayed(name).module, "main").lower(tosaic.CompileOptions(target("cortex-m55")))
    assert ".size" in lowered.show("asm")
