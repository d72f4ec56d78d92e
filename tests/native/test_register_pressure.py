"""Sums of a register tile stay in registers: what a kernel does around the loop over K, its division among threads too, leaves
the registers to it."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.graph import Function, Module
from tosaic.lowering.graph.types import F32, I8, I32, TensorType
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.native.llvm.emit import emit_functions

PRODUCT, MIN_PRODUCTS = re.compile(r"vpdpbusd|vfmadd|vpmul|vpmadd"), 6
"""Products, and how many an innermost loop has that is a register tile's."""


def rescaled(outputs: int, kernel: int) -> Module:
    """A convolution of bytes with the rescaling of each channel and a clamp, as quantized networks have them."""
    g, e, depth = np.random.default_rng(0), Emitter(), 512 // kernel
    x = e.blocks[0].argument(TensorType((1, 32, 16, depth), I8), "x")
    weights = e.constant(g.integers(-127, 128, (outputs, kernel, kernel, depth)).astype(np.int8))
    zero, around = e.constant(np.array([-5], np.int8)), (kernel - 1) // 2
    sums = e("conv2d", x, weights, e.constant(g.integers(-999, 999, outputs).astype(np.int32)), zero,
             e.constant(np.zeros(1, np.int8)), pad=(around,) * 4, stride=(1, 1), dilation=(1, 1), acc_type=I32)
    multiplier = e.constant(g.integers(1 << 30, (1 << 31) - 1, outputs).astype(np.int32))
    y = e("rescale", sums, multiplier, e.constant(np.full(outputs, 40, np.int8)), e.constant(np.zeros(1, np.int32)),
          e.constant(np.array([3], np.int8)), scale32=True, rounding_mode="DOUBLE_ROUND", per_channel=True,
          input_unsigned=False, output_unsigned=False, to=I8)
    return Module((Function("f", e.blocks[0].finish(y), (y.type,)),))


def of_floats(outputs: int, kernel: int) -> Module:
    g, e, depth = np.random.default_rng(0), Emitter(), 512 // kernel
    x = e.blocks[0].argument(TensorType((1, 32, 16, depth), F32), "x")
    weights, bias = (e.constant(g.standard_normal(shape).astype(np.float32)) for shape in (
        (outputs, kernel, kernel, depth), outputs))
    zero, around = e.constant(np.zeros(1, np.float32)), (kernel - 1) // 2
    y = e("conv2d", x, weights, bias, zero, zero, pad=(around,) * 4, stride=(1, 1), dilation=(1, 1), acc_type=F32)
    return Module((Function("f", e.blocks[0].finish(y), (y.type,)),))


def register_tiles(asm: str) -> Iterator[list[str]]:
    """The innermost loops of assembly that have many products."""
    lines, labels = asm.splitlines(), dict[str, int]()
    for number, line in enumerate(lines):
        if label := re.match(r"(\.\w+):", line):
            labels[label[1]] = number
        jump = re.match(r"\tj\w+\t(\.\w+)$", line)
        if jump and jump[1] in labels:
            body = lines[labels[jump[1]] + 1:number]
            products = sum(PRODUCT.search(x) is not None for x in body)
            if products >= MIN_PRODUCTS and not any(x.startswith(".L") for x in body):
                yield body


@pytest.mark.sampled(4)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("outputs", "kernel"), [(512, 1), (256, 1), (128, 3), (96, 1), (24, 3), (24, 1), (8, 1)])
@pytest.mark.parametrize("make", [rescaled, of_floats])
@pytest.mark.parametrize("cpu", ["znver4", "cascadelake", "alderlake", "haswell", "skylake-avx512"])
def test_sums_stay_in_registers(cpu: str, make: Callable[[int, int], Module], outputs: int, kernel: int, threads: int) -> None:
    options = tosaic.CompileOptions(tosaic.target(cpu=cpu), threads=threads)
    asm = Traced(make(outputs, kernel), "f").lower(options).show("asm")
    loops = list(register_tiles(asm))
    assert loops
    for body in loops:
        assert not [line for line in body if re.search(r"\(%rsp\).*[yz]mm|[yz]mm.*\(%rsp", line)]


def test_loops_of_one_iteration_are_their_bodies() -> None:
    """Those at the outside are there to be divided."""
    b, x, y = Builder("f", keeps=3), Buffer("x", "float32", (4,), "argument"), Buffer("y", "float32", (4,), "result")
    once, again, many = Axis("once", 1), Axis("again", 1), Axis("many", 4)

    def body() -> None:
        place = Affine.of(many) + Affine.of(once) + Affine.of(again) * 3
        b.store(y, place, b.load(x, place))

    b.loop(once, lambda: b.loop(many, lambda: b.loop(again, body)))
    function = b.finish()
    for name in ("x86-64-v3", "cortex-m4"):
        text = str(emit_functions([function], tosaic.target(name)))
        assert text.count(" phi ") == 1
