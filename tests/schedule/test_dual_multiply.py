"""Products of bytes by pairs of 16 bits (Arm's DSP extension): what their loops mean, what other machines make of them, and
which contractions are done so."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic import CompileOptions
from tosaic.jit.stages import Traced
from tosaic.jit.tools.report.judge_boards import for_boards
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.elements.affine import Affine
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Function, Module
from tosaic.lowering.graph.types import I8, I32, TensorType
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.ir import Literal, Type
from tosaic.lowering.loops.lane_operations import apply
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.llvm.arm_products import run_of
from tosaic.lowering.native.process.load import load
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.schedule import lower
from tosaic.lowering.schedule.strategy import Weights
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter

M4 = target("cortex-m4")
Rng = np.random.Generator


def extremes(g: Rng, shape: tuple[int, ...], least: int = -128) -> np.ndarray:
    """Bytes, half of them the least or the largest."""
    values = g.integers(least, 128, shape)
    return np.where(g.random(shape) < 0.5, g.choice([least, 127], shape), values).astype(np.int8)


def convolution(seed: int) -> Module:
    """A convolution or a product with constants, of any sizes, strides, padding and zero point."""
    g, e = np.random.default_rng(seed), Emitter()
    channels, outputs = int(g.choice([1, 3, 4, 8, 12, 16, 20])), int(g.integers(1, 10))
    kernel = tuple(int(k) for k in g.integers(1, 4, 2))
    stride, dilation = (tuple(int(k) for k in g.integers(1, 3, 2)) for _ in range(2))
    pad = [int(p) for p in g.integers(0, 2, 4)]
    size = [0, 0]
    for i in range(2):
        reach = (kernel[i] - 1) * dilation[i] + 1
        size[i] = max(1, reach - pad[2 * i] - pad[2 * i + 1]) + int(g.integers(0, 5))
        pad[2 * i + 1] += -(size[i] + pad[2 * i] + pad[2 * i + 1] - reach) % stride[i]
    x = e.blocks[0].argument(TensorType((int(g.integers(1, 3)), *size, channels), I8), "x")
    weights = e.constant(extremes(g, (outputs, *kernel, channels), -127))
    zero = e.constant(np.array([g.choice([-128, -5, 0, 3, 127])], np.int8))
    bias = e.constant(g.integers(-1 << 20, 1 << 20, outputs).astype(np.int32))
    y = e("conv2d", x, weights, bias, zero, e.constant(np.zeros(1, np.int8)), pad=tuple(pad), stride=stride, dilation=dilation,
          acc_type=I32)
    return Module((Function("f", e.blocks[0].finish(y), (y.type,)),))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "weights"), [("cortex-m4", "int8"), ("cortex-m4", "int16"), ("cortex-m3", "int8")])
@pytest.mark.parametrize("seed", range(24))
def test_sums_are_those_of_the_interpreter(seed: int, name: str, weights: Weights) -> None:
    """A Cortex-M3 has no such instruction: one product at a time, and zero points in the initial sums."""
    module = convolution(seed)
    x = extremes(np.random.default_rng(seed), module.functions[0].arguments[0].tensor.dims)
    whole = rewritten(module)
    program = lower(fuse(whole, whole.function("f")), target(name), weights=weights)
    verify_program(program)
    (wanted,) = Interpreter(module)(x)
    np.testing.assert_array_equal(run_program(program, [x])[0], wanted)
    if seed % 6 == 0:  # another machine has no such instruction
        call = load(program, plan(program), target("host"))
        np.testing.assert_array_equal(np.asarray(call(x)[0]), wanted)
        call.close()


def schedule_of(module: Module, name: str) -> str:
    return Traced(module, "f").lower(CompileOptions(target(name))).show("schedule")


@pytest.mark.parametrize(("name", "is_dual"), [
    ("cortex-m4", True), ("cortex-m7", True), ("cortex-m33", True), ("cortex-m33+nodsp", False), ("cortex-m3", False),
    ("cortex-m0plus", False), ("rv32imc", False)])
def test_processors_with_the_extension_use_it(name: str, is_dual: bool) -> None:
    e = Emitter()
    x = e.blocks[0].argument(TensorType((1, 6, 6, 8), I8), "x")
    zero = e.constant(np.zeros(1, np.int8))
    weights = e.constant(extremes(np.random.default_rng(0), (4, 3, 3, 8), -127))
    y = e("conv2d", x, weights, e.constant(np.zeros(4, np.int32)), zero, zero, pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1),
          acc_type=I32)
    module = Module((Function("f", e.blocks[0].finish(y), (y.type,)),))
    assert ("contraction: dual" in schedule_of(module, name)) == is_dual


def test_the_offset_is_added_before_the_product_and_sums_wrap_around() -> None:
    top, offset = np.array([(1 << 31) - 1], np.int32), np.array([128], np.int32)
    y = apply("pairs", 2, [np.full(4, -128, np.int8), offset * 0])
    for x, added, wanted in ((np.full(4, 127, np.int8), offset, 4 * 255 * -128),
                             (np.full(4, 255, np.uint8), -offset, 4 * 127 * -128),
                             (np.full(4, -128, np.int8), offset * 0, 4 * 128 * 128 - (1 << 32))):
        assert apply("dot_pairs", 1, [top, apply("pairs", 2, [x, added]), y])[0] == (1 << 31) - 1 + wanted


def test_pairs_are_the_even_bytes_and_the_odd_ones() -> None:
    x = np.array([-128, -1, 127, 5], np.int8)
    np.testing.assert_array_equal(apply("pairs", 2, [x, np.array([3], np.int32)]).view(np.int16), [-125, 130, 2, 8])


def plain(rows: int = 6, channels: int = 8, outputs: int = 12, shift: int = 0) -> Module:
    """A convolution of 3 x 3, of weights that are shifted right."""
    e = Emitter()
    x = e.blocks[0].argument(TensorType((1, rows, 6, channels), I8), "x")
    zero = e.constant(np.zeros(1, np.int8))
    weights = e.constant(extremes(np.random.default_rng(0), (outputs, 3, 3, channels), -127) >> shift)
    y = e("conv2d", x, weights, e.constant(np.zeros(outputs, np.int32)), zero, zero, pad=(1, 1, 1, 1), stride=(1, 1),
          dilation=(1, 1), acc_type=I32)
    return Module((Function("f", e.blocks[0].finish(y), (y.type,)),))


@pytest.mark.parametrize(("outputs", "shift", "is_dual"), [(12, 0, True), (12, 4, False), (11, 4, True)])
def test_weights_of_four_bits_stay_so_where_columns_are_even(outputs: int, shift: int, is_dual: bool) -> None:
    """Of an odd number of columns two cannot share a byte: then they are bytes, and products by pairs are faster."""
    shown = schedule_of(plain(outputs=outputs, shift=shift), "cortex-m4")
    assert ("contraction: dual" in shown or "contraction: pairs" in shown) == is_dual


def test_weights_kept_as_pairs_take_twice_the_flash_and_the_report_says_so() -> None:
    reports = [Traced(plain(), "f").lower(CompileOptions(M4, weights=weights)).report() for weights in ("int8", "int16")]
    nbytes = 12 * 3 * 3 * 8
    assert reports[1].constants - reports[0].constants == nbytes
    assert [narrow.type for narrow in reports[0].narrow] == [] and reports[1].narrow[0].saved == -nbytes
    assert f"in int16 {nbytes:,} bytes of flash more" in " ".join(str(reports[1]).split())


def test_boards_without_the_extension_are_judged_with_weights_as_bytes() -> None:
    assert [for_boards(CompileOptions(M4, weights="int16"), target(name)).weights for name in ("cortex-m7", "cortex-m3")] == [
        "int16", "int8"]


@pytest.mark.parametrize("name", ["cortex-m3", "cortex-m55", "rv32imc"])
def test_only_processors_with_the_extension_keep_weights_as_pairs(name: str) -> None:
    with pytest.raises(Problem, match="weights as int16 are for processors that multiply pairs of 16 bits"):
        Traced(plain(), "f").lower(CompileOptions(target(name), weights="int16"))
    with pytest.raises(ValueError, match="weights is 'int4'"):
        CompileOptions(M4, weights="int4")  # type: ignore[arg-type]


def inner_loop(name: str, weights: Weights, mnemonic: str) -> list[str]:
    """The lines of the loop over K of a convolution of 32 channels."""
    asm = Traced(plain(channels=32), "f").lower(CompileOptions(target(name), weights=weights)).show("asm")
    body = max(asm.split("products."), key=lambda text: text.count(mnemonic))
    label = body.index(".LBB")
    lines = body[label:body.index("\tb", label)].splitlines()
    return [line for line in lines if line.startswith("\t") and line[1] not in "@."]


@pytest.mark.parametrize(("name", "weights", "mnemonic", "products", "most"), [
    ("cortex-m4", "int16", "smlad", 64, 108), ("cortex-m4", "int8", "smlad", 64, 140), ("cortex-m3", "int8", "mla", 24, 54)])
def test_the_inner_loop_is_products_and_what_they_need(name: str, weights: Weights, mnemonic: str, products: int, most: int
                                                       ) -> None:
    """A step of a tile of two rows by two columns is four loads of two words, and half of these where bytes are widened, beside
    eight SMLAD; without them, one of three by two is five loads and six products. Sums are not spilled."""
    loop = inner_loop(name, weights, mnemonic)
    assert sum(mnemonic in line for line in loop) == products and len(loop) <= most
    assert sum("[sp" in line for line in loop) <= 2


def test_what_is_used_behind_a_run_of_products_is_no_part_of_one() -> None:
    b, x, out = Builder("f"), Buffer("x", "int32", (4,), "argument"), Buffer("out", "int32", (3,), "result")
    one, two = (b.load(x, Affine.of(2 * i), 2) for i in range(2))
    total = b.op("dot_pairs", b.op("dot_pairs", Literal(0, Type("int32")), one, two, type=Type("int32")), two, two,
                 type=Type("int32"))
    b.store(out, Affine(), total)
    found = run_of(b.finish().body, M4)
    assert found and len(found.sums) == 2 and found.count == 4
    b.store(out, Affine.of(1), two)
    assert run_of(b.finish().body, M4) is None
