"""Every strategy with every kind of operand: constant, of the run, or computed by what is fused into it; on one thread and on
two; with each way of tiling rows. Each cell is compiled, and held against the interpreter:

    python -m tosaic.tests.schedule.operand_table

runs them all, and prints for each strategy in how many cells it was chosen, and the cells that cannot be, with the reason.
"""
from __future__ import annotations

import itertools
import math
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import tosaic
from tosaic.jit.stages import Lowered, Traced
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BY_STORAGE, F32, I32, Array, TensorType
from tosaic.lowering.kernels.interpret import VariableContents
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.row_tiling.row_tiling import RowPolicy
from tosaic.lowering.schedule.contraction.contraction_strategies import ContractionStrategy
from tosaic.lowering.schedule.contraction.gemv import Gemv
from tosaic.lowering.schedule.contraction.padded_input import PaddedInput
from tosaic.lowering.schedule.elementwise.elementwise import Elementwise
from tosaic.lowering.schedule.elementwise.transpose import Transpose
from tosaic.lowering.schedule.fft import FourierTransform
from tosaic.lowering.schedule.row_reduction.lower import RowReduction
from tosaic.lowering.schedule.schedule import strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.schedule.strategy import Precision
from tosaic.lowering.schedule.window.column_reduction import ColumnReduction
from tosaic.lowering.schedule.window.int8_window_loops import Int8Window
from tosaic.lowering.schedule.window.window import Window
from tosaic.lowering.schedule.winograd.winograd import Winograd
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

from ..fuse.graphs import Graph, conv, rescale
from ..native.machines import runs_here
from .kernels import TARGETS
from .test_schedule_text import AMX

Dims = tuple[int, ...]
V3, DOTS = TARGETS["256 bits, no masks"], TARGETS["256 bits, no masks, dot4"]
ROUNDED = 1e-3
"""Of the greatest magnitude: what transforms of inputs, or limbs, may round away."""


class Draft(Graph):
    """A graph with data for its arguments."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.numbers, self.data = np.random.default_rng(seed), list[Array]()
        self.variables: list[tuple[str, TensorType, Array | None]] = []

    def array(self, dims: Dims, dtype: str = "float32") -> Array:
        most = 100 if dtype == "int8" else 3
        return self.numbers.integers(-most, most + 1, dims).astype(dtype)

    def given(self, data: Array) -> Value:
        self.data.append(data)
        return self.input(*data.shape, dtype=data.dtype.name)

    def fresh(self, dims: Dims, dtype: str) -> Value:
        return self.given(self.array(dims, dtype))

    def axis(self, dims: Dims) -> int:
        """The longest axis."""
        return max(range(len(dims)), key=lambda d: dims[d])


# ---- kinds of operands -------------------------------------------------------------------------------------------------
def gathered(g: Draft, dims: Dims, dtype: str) -> Value:
    """By indices of the run, rows of a table."""
    rows, columns = math.prod(dims[:-1]), dims[-1]
    indices = g.given(g.numbers.integers(0, rows + 3, (1, rows)).astype(np.int32))
    return g.op("reshape", g.op("gather", g.fresh((1, rows + 3, columns), dtype), indices), g.shape(*dims))


def padded(g: Draft, dims: Dims, dtype: str) -> Value:
    d = g.axis(dims)
    inner = tuple(max(1, n - 3) if i == d else n for i, n in enumerate(dims))
    border = [(0, 0) if i != d else (1, dims[d] - inner[d] - 1) if dims[d] > 1 else (0, 0) for i in range(len(dims))]
    return g.op("pad", g.fresh(inner, dtype), g.shape(*itertools.chain(*border)), np.ones(1, dtype))


def selected(g: Draft, dims: Dims, dtype: str) -> Value:
    condition = g.given(g.numbers.integers(0, 2, dims).astype(bool))
    return g.op("select", condition, g.fresh(dims, dtype), g.fresh(dims, dtype))


def converted(g: Draft, dims: Dims, dtype: str) -> Value:
    return g.op("cast", g.fresh(dims, "int16" if dtype == "int8" else "int32" if dtype == "float32" else "int16"),
                to=BY_STORAGE[dtype])


def of_window(g: Draft, dims: Dims, dtype: str) -> Value:
    """What a window over an image makes: where both are tiled by rows, a ring of its last rows."""
    image = dims if len(dims) == 4 else (1, dims[-2] if len(dims) > 1 else 1, 1, dims[-1]) if len(dims) < 3 else (1, *dims[-3:])
    count = math.prod(dims) // math.prod(image)
    image = (count, *image[1:])
    channels = image[-1]
    if dtype == "int8":
        y = conv(g, g.fresh(image, "int8"), g.array((3, 3, channels, 1), "int8"), g.array((channels,), "int32"), 0,
                 "depthwise_conv2d", (1, 1, 1, 1))
        made = rescale(g, y, channels, g.numbers, 0)
    else:
        x = g.op("cast", g.fresh(image, dtype), to=F32) if dtype != "float32" else g.fresh(image, dtype)
        made = conv(g, x, g.array((3, 3, channels, 1)), g.array((channels,)), 0, "depthwise_conv2d", (1, 1, 1, 1))
        made = made if dtype == "float32" else g.op("cast", made, to=BY_STORAGE[dtype])
    return made if made.tensor.dims == dims else g.op("reshape", made, g.shape(*dims))


def sliced(g: Draft, dims: Dims, dtype: str) -> Value:
    whole = tuple(n + 2 for n in dims)
    return g.op("slice", g.fresh(whole, dtype), g.shape(*[1] * len(dims)), g.shape(*dims))


def joined(g: Draft, dims: Dims, dtype: str) -> Value:
    d = g.axis(dims)
    parts = [dims[d] - dims[d] // 2, dims[d] // 2]
    return g.op("concat", *[g.fresh(tuple(p if i == d else n for i, n in enumerate(dims)), dtype) for p in parts if p], axis=d)


def turned(g: Draft, dims: Dims, dtype: str) -> Value:
    return g.op("transpose", g.fresh(dims[::-1], dtype), perms=tuple(range(len(dims)))[::-1])


def variable(g: Draft, dims: Dims, dtype: str) -> Value:
    name, type = f"v{len(g.variables)}", TensorType(dims, BY_STORAGE[dtype])
    g.variables.append((name, type, g.array(dims, dtype)))
    return g.read(name, type)


def elementwise(g: Draft, dims: Dims, dtype: str) -> Value:
    x, y = g.fresh(dims, dtype), g.fresh(dims, dtype)
    return g.op("bitwise_xor" if dtype == "int8" else "maximum", x, y)


Kind = Callable[[Draft, Dims, str], Value]
KINDS: Mapping[str, Kind] = {
    "constant": lambda g, dims, dtype: g.constant(g.array(dims, dtype)),
    "argument": lambda g, dims, dtype: g.fresh(dims, dtype),
    "elementwise": elementwise, "gather": gathered, "pad": padded, "select": selected, "cast": converted, "ring": of_window,
    "slice": sliced, "concat": joined, "transpose": turned, "variable": variable,
    "reshape": lambda g, dims, dtype: g.op("reshape", g.fresh((math.prod(dims),), dtype), g.shape(*dims)),
    "reverse": lambda g, dims, dtype: g.op("reverse", g.fresh(dims, dtype), axis=g.axis(dims)),
}


# ---- strategies ----------------------------------------------------------------------------------------------------------
Operand = Callable[..., Value]
"""Makes an operand of a shape, of float32 or another dtype."""


@dataclass(frozen=True, slots=True)
class Row:
    """A strategy (of contractions: the micro-kernel), an operator that it runs, and a machine that has it."""
    strategy: type | str
    make: Callable[[Draft, Operand], Value | tuple[Value, ...]]
    target: Target = V3
    precision: Precision = "f32"


def product(m: int, k: int, n: int, dtype: str = "float32") -> Callable[[Draft, Operand], Value]:
    return lambda g, x: g.op("matmul", x((1, m, k), dtype), g.array((1, k, n), dtype), np.zeros(1, dtype), np.zeros(1, dtype))


def both(g: Draft, x: Operand) -> Value:
    """A product of which no factor is a constant, unless both are."""
    zero = np.zeros(1, np.float32)
    return g.op("matmul", x((1, 24, 32)), x((1, 32, 40)), zero, zero)


def bytes_conv(g: Draft, x: Operand) -> Value:
    return conv(g, x((1, 5, 5, 8), "int8"), g.array((8, 3, 3, 8), "int8"), g.array((8,), "int32"), 2, "conv2d", (1, 1, 1, 1))


def float_conv(channels: int, extent: int) -> Callable[[Draft, Operand], Value]:
    return lambda g, x: conv(g, x((1, extent, extent, channels)), g.array((channels, 3, 3, channels)), g.array((channels,)),
                             pad=(1, 1, 1, 1))


def deep(g: Draft, x: Operand, dtype: str = "float32") -> Value:
    wide = "int32" if dtype == "int8" else dtype
    return conv(g, x((1, 9, 10, 16), dtype), g.array((3, 3, 16, 1), dtype), g.array((16,), wide), 0, "depthwise_conv2d",
                (1, 1, 1, 1))


def transforms(name: str) -> Callable[[Draft, Operand], tuple[Value, ...]]:
    def make(g: Draft, x: Operand) -> tuple[Value, ...]:
        if name == "rfft2d":
            return g.ops(name, x((2, 8, 16)), local_bound=False)
        return g.ops(name, x((2, 8, 16)), x((2, 8, 16)), inverse=False, local_bound=False)

    return make


def softmax(g: Draft, x: Operand) -> Value:
    """A sum along rows, and what is made with it."""
    y = x((1, 12, 40))
    return g.op("sub", y, g.op("reduce_sum", y, axis=2))


ROWS: Mapping[str, Row] = {
    "contraction of floats": Row("vectors", product(33, 24, 40)),
    "contraction of two operands": Row("vectors", both),
    "convolution": Row("vectors", float_conv(8, 9)),
    "contraction of bytes, VNNI": Row("dot4", product(20, 64, 32, "int8"), DOTS),
    "contraction of bytes, PMADDWD": Row("dot2", product(20, 64, 32, "int8"), V3),
    "convolution of bytes": Row("dot2", bytes_conv, V3),
    "contraction of bytes, SMLAD": Row("dual", bytes_conv, target("cortex-m4")),
    "contraction of bytes, VMLADAVA": Row("dot", bytes_conv, target("cortex-m55")),
    "contraction of bytes, SMMLA": Row("dot8", bytes_conv, target("neoverse-v1")),
    "contraction of bytes, VWMACC": Row("widen", bytes_conv, target("rv64gcv")),
    "contraction of bytes, AMX": Row("tiles", product(17, 64, 32, "int8"), AMX),
    "contraction of limbs, AMX": Row("limbs", product(64, 64, 64), AMX, "bf16x6"),
    "minimal filter": Row(Winograd, float_conv(32, 16), V3, "winograd"),
    "padded input": Row(PaddedInput, lambda g, x: conv(g, x((1, 9, 11, 5)), g.array((7, 3, 3, 5)), g.array((7,)),
                                                       pad=(1, 1, 1, 1)), TARGETS["512 bits"]),
    "row reduction": Row(RowReduction, softmax),
    "column reduction": Row(ColumnReduction, lambda g, x: g.op("reduce_sum", x((1, 32, 1024)), axis=1),
                            replace(V3, l2_bytes=1 << 10)),
    "gemv": Row(Gemv, lambda g, x: g.op("matmul", x((1, 16, 64)), x((1, 64, 1)), *[np.zeros(1, np.float32)] * 2)),
    "window of bytes": Row(Int8Window, lambda g, x: deep(g, x, "int8"), DOTS),
    "window": Row(Window, deep),
    "pool": Row(Window, lambda g, x: g.op("max_pool2d", x((1, 12, 12, 24)), kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))),
    "average": Row(Window, lambda g, x: g.op("avg_pool2d", x((1, 8, 8, 24), "int8"), *[np.zeros(1, np.int8)] * 2, kernel=(2, 2),
                                             stride=(2, 2), pad=(0, 0, 0, 0), acc_type=I32)),
    "transpose": Row(Transpose, lambda g, x: g.op("transpose", x((40, 64)), perms=(1, 0))),
    "elementwise": Row(Elementwise, lambda g, x: g.op("add", x((20, 33)), x((20, 33)))),
    "Fourier transform": Row(FourierTransform, transforms("fft2d")),
    "real Fourier transform": Row(FourierTransform, transforms("rfft2d")),
    "transposed convolution": Row("vectors", lambda g, x: g.op(
        "transpose_conv2d", x((1, 6, 7, 8)), g.array((8, 3, 3, 8)), g.array((8,)), *[np.zeros(1, np.float32)] * 2,
        out_pad=(0, 0, 0, 0), stride=(2, 2), acc_type=F32)),
    "argmax": Row(Elementwise, lambda g, x: g.op("argmax", x((6, 40)), axis=1, nan_mode="PROPAGATE")),
    "rescale": Row(Elementwise, lambda g, x: rescale(g, x((1, 5, 6, 8), "int32"), 8, g.numbers)),
    "scatter": Row(Elementwise, lambda g, x: g.op("scatter", x((1, 9, 4)), np.array([[3, 1, 8]], np.int32),
                                                  g.array((1, 3, 4)))),
    "resize": Row(Elementwise, lambda g, x: g.op("resize", x((1, 5, 6, 4)), g.shape(4, 1, 4, 1), g.shape(0, 0), g.shape(0, 0),
                                                 mode="NEAREST_NEIGHBOR")),
    "running sum": Row("vectors", lambda g, x: g.op(
        "reduce_sum", g.op("mul", g.op("reshape", x((24,)), g.shape(1, 24)), np.tril(np.ones((24, 24), np.float32)),
                           np.zeros(1, np.int8)), axis=1)),
    "rank": Row(Window, lambda g, x: rank(g, x((24,)))),
}
"""Sorts and running sums are sums over comparisons and masks."""
THREADS, POLICIES = (1, 2), (None, *get_args(RowPolicy))


def rank(g: Draft, x: Value) -> Value:
    """How many elements are less: what places are in a sort."""
    one, other = g.op("reshape", x, g.shape(24, 1)), g.op("reshape", x, g.shape(1, 24))
    return g.op("reduce_sum", g.op("cast", g.op("greater", one, other), to=I32), axis=1)


# ---- a cell --------------------------------------------------------------------------------------------------------------
def with_small_tasks(machine: Target, rows: RowPolicy | None) -> Target:
    """The machine with next to no cache where that is what rows are tiled for, and with tasks of any size."""
    small = {} if rows == "never" else {"l2_bytes": min(machine.l2_bytes, 1 << 12)}
    return replace(machine, costs=replace(machine.costs, task_grain_cycles=1.0), **small)


def impossible(row: str, kind: str) -> str:
    """Why a cell cannot be; empty where it can."""
    g = Draft(0)
    values = ROWS[row].make(g, lambda dims, dtype="float32": KINDS[kind](g, dims, dtype))
    del values
    return "all is known when compiling" if not g.data and not g.variables else ""


def of_cell(row: str, kind: str, threads: int, rows: RowPolicy | None) -> tuple[Draft, Traced, tosaic.CompileOptions]:
    case = ROWS[row]
    g = Draft(len(row) * 31 + len(kind))
    made = case.make(g, lambda dims, dtype="float32": KINDS[kind](g, dims, dtype))
    module = g.module(*(made if isinstance(made, tuple) else (made,)), variables=g.variables)
    machine = with_small_tasks(case.target, rows)
    return g, Traced(module, "main"), tosaic.CompileOptions(machine, threads, case.precision, rows)


def results_of(lowered: Lowered, data: Sequence[Array]) -> Sequence[Array]:
    """Of machine code, or of the loops' interpreter where this machine has no such instructions."""
    if not runs_here(lowered.target) or lowered.target.matrix_unit:
        return run_program(lowered.program, data, VariableContents())
    found = lowered.compile(tosaic.Context("cell"))(*data)
    return found if isinstance(found, tuple) else (found,)


def chosen(lowered: Lowered, row: Row) -> bool:
    """True if the row's strategy runs a kernel."""
    request = ScheduleRequest(lowered.target, lowered.options.precision)
    found = [getattr(s, "inner", s) if isinstance(row.strategy, str) else s
             for k in lowered.kernels.kernels for s in strategies_of(k, request)]
    return any(s.micro_kernel == row.strategy if isinstance(s, ContractionStrategy) else type(s) is row.strategy for s in found)


def run_cell(row: str, kind: str, threads: int, rows: RowPolicy | None) -> bool:
    """True if the row's strategy was chosen; an AssertionError where values differ."""
    g, traced, options = of_cell(row, kind, threads, rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="tosaic compiles .* without ", category=RuntimeWarning)
        lowered = traced.lower(options)
    right = Interpreter(traced.module, "main", InterpreterVariables())(*g.data)
    exact = ROWS[row].strategy not in (FourierTransform, Winograd, "limbs")
    for actual, wanted in zip(results_of(lowered, g.data), right, strict=True):
        bound = 0 if exact else ROUNDED * max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(np.asarray(actual, np.float64), np.asarray(wanted, np.float64), rtol=0, atol=bound)
    return chosen(lowered, ROWS[row])


def main(arguments: Sequence[str]) -> int:
    cells = list(itertools.product(ROWS, KINDS, THREADS, POLICIES))
    if arguments:
        cells = random.Random(0).sample(cells, int(arguments[0]))
    ran, used, reasons, failures = Counter[str](), Counter[str](), Counter[str](), list[Any]()
    for cell in cells:
        if reason := impossible(cell[0], cell[1]):
            reasons[reason] += 1
            continue
        try:
            used[cell[0]] += run_cell(*cell)
        except Exception as error:
            failures.append(cell)
            print(cell, type(error).__name__, str(error)[:300].replace("\n", " "), flush=True)
        ran[cell[0]] += 1
    for row in ran:
        print(f"{row}: {ran[row]} cells, the strategy in {used[row]}")
    print(f"{len(cells)} cells: {sum(ran.values())} compiled, {len(failures)} failed, {dict(reasons)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
