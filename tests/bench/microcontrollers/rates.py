"""Multiply-adds an instruction, beside what the instruction set has at most: MLPerf Tiny's networks layer by layer, and single
layers, int8, on every processor that counts here.

    python tests/bench/microcontrollers --rates                                   64-bit Arm and RISC-V
    python tests/bench/microcontrollers --rates --processors cortex-m4 rv64gcv

A network's number is the products of its convolutions and dense layers over the instructions of these layers, pools, sums and
softmax left out. The bound is what one instruction does at most; loads, loops and rescaling come beside it. Outputs must be
equal to the bit to those of LiteRT's reference kernels, and of single layers to the interpreter's.
"""
from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tosaic.jit.aot import save
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.graph.graph import Function, Module
from tosaic.lowering.graph.types import I8, I32, Array, TensorType
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

from .boards import Board
from .compiled import counted, layer_counts
from .layers import Network
from .table import markdown, unequal

BOUNDS: Mapping[str, tuple[int, str]] = {
    "cortex-m3": (1, "MLA"), "cortex-m4": (2, "SMLAD"), "cortex-m7": (2, "SMLAD"), "cortex-m33": (2, "SMLAD"),
    "cortex-m55": (16, "VMLADAVA"), "aarch64": (4, "SMLAL"), "cortex-a76": (16, "SDOT"), "neoverse-v1": (32, "SMMLA"),
    "rv64gc": (1, "MUL"), "rv64gcv": (32, "VWMACC.VX, LMUL 8"), "rv64gcv_zvl256b": (64, "VWMACC.VX, LMUL 8")}
"""By processor: products of bytes of one instruction, at most, and its name. RISC-V's MUL needs an addition beside it."""
PROCESSORS = ("aarch64", "cortex-a76", "neoverse-v1", "rv64gc", "rv64gcv", "rv64gcv_zvl256b")
"""By default: those with 64 bits."""
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
"""Layers with products."""


@dataclass(frozen=True, slots=True)
class Single:
    """One layer, of an input of these sizes; a kernel of one is a product of its own for each place."""
    name: str
    size: tuple[int, int, int]
    outputs: int
    kernel: int
    stride: int = 1
    is_depthwise: bool = False

    @property
    def products(self) -> int:
        height, width, channels = self.size
        places = -(-height // self.stride) * -(-width // self.stride)
        return places * self.kernel**2 * self.outputs * (1 if self.is_depthwise else channels)

    def function(self, name: str) -> Function:
        """The layer with a rescale of each channel, as TensorFlow Lite's are: sizes divide by the stride."""
        g, e, channels = np.random.default_rng(self.outputs), Emitter(), self.size[2]
        x = e.blocks[0].argument(TensorType((1, *self.size), I8), "x")
        shape = ((self.kernel, self.kernel, channels, 1) if self.is_depthwise
                 else (self.outputs, self.kernel, self.kernel, channels))
        weights, zero = e.constant(g.integers(-127, 128, shape).astype(np.int8)), e.constant(np.zeros(1, np.int8))
        before = (self.kernel - 1) // 2
        after = (self.kernel - 1 - before) if self.stride == 1 else self.kernel - self.stride - before
        bias = e.constant(g.integers(-1 << 12, 1 << 12, self.outputs).astype(np.int32))
        sums = e("depthwise_conv2d" if self.is_depthwise else "conv2d", x, weights, bias, e.constant(np.array([3], np.int8)),
                 zero, pad=(before, after, before, after), stride=(self.stride, self.stride), dilation=(1, 1), acc_type=I32)
        multiplier = e.constant(g.integers(1 << 30, (1 << 31) - 1, self.outputs).astype(np.int32))
        y = e("rescale", sums, multiplier, e.constant(np.full(self.outputs, 41, np.int8)), e.constant(np.zeros(1, np.int32)),
              e.constant(np.array([-4], np.int8)), scale32=True, rounding_mode="DOUBLE_ROUND", per_channel=True,
              input_unsigned=False, output_unsigned=False, to=I8)
        return Function(name, e.blocks[0].finish(y), (y.type,))


SINGLES = (Single("conv 3x3, 16x16x32 to 32", (16, 16, 32), 32, 3), Single("conv 1x1, 16x16x64 to 64", (16, 16, 64), 64, 1),
           Single("depthwise 3x3, 16x16x64", (16, 16, 64), 64, 3, is_depthwise=True),
           Single("conv 3x3 stride 2, 32x32x3 to 16", (32, 32, 3), 16, 3, 2), Single("256 to 64", (1, 1, 256), 64, 1))


@dataclass(frozen=True, slots=True)
class Rate:
    """What was counted: products, and instructions."""
    products: int
    instructions: int

    def __str__(self) -> str:
        return f"{self.products / self.instructions:.2f}"


def rates(board: Board, networks: Mapping[str, Network], wrong: list[str]) -> dict[str, Rate]:
    """By networks and their kinds of layers, and by single layers; what is not equal to the bit goes to `wrong`."""
    found: dict[str, Rate] = {}
    with tempfile.TemporaryDirectory(prefix="tosaic-bench-") as made_here:
        folder = Path(made_here)
        board = board.calibrated(folder)
        for title, network in networks.items():
            counts = layer_counts(network, board, folder)
            for layer, count in zip(network.layers, counts, strict=True):
                wrong += unequal(f"{title} on {board.processor}, {layer.name}", count.data, layer.expected)
            found[title] = total([(layer.products, count.instructions) for layer, count in zip(network.layers, counts)
                                  if layer.kind in KINDS])
        for single, rate in zip(SINGLES, singles(board, folder, wrong)):
            found[single.name] = rate
    return found


def total(counts: Sequence[tuple[int, int]]) -> Rate:
    return Rate(sum(products for products, _ in counts), sum(instructions for _, instructions in counts))


def singles(board: Board, folder: Path, wrong: list[str]) -> Iterator[Rate]:
    """Single layers, all in one program."""
    module = Module(tuple(single.function(f"layer_{number}") for number, single in enumerate(SINGLES)))
    options = board.options()
    lowered = [Traced(module, f.name).lower(options) for f in module.functions]
    inputs: list[Array] = [np.random.default_rng(n).integers(-128, 128, f.arguments[0].tensor.dims).astype(np.int8)
                           for n, f in enumerate(module.functions)]
    counts = counted(lowered, save(lowered, folder, "singles"), [(n, (x,)) for n, x in enumerate(inputs)], board, folder)
    for single, f, x, count in zip(SINGLES, module.functions, inputs, counts, strict=True):
        (expected,) = Interpreter(module, f.name, InterpreterVariables())(x)
        wrong += unequal(f"{single.name} on {board.processor}", count.data, expected)
        yield Rate(single.products, count.instructions)


def rate_table(found: Mapping[str, Mapping[str, Rate]]) -> str:
    """Rows by network and layer, columns by processor."""
    processors = list(found)
    rows = [(name, *(str(found[p][name]) for p in processors)) for name in next(iter(found.values()))]
    bounds = ("an instruction, at most", *(f"{BOUNDS[p][0]} ({BOUNDS[p][1]})" for p in processors))
    return markdown(("multiply-adds an instruction", *processors), [*rows, bounds])
