"""Products of bytes with large weights: all rows are packed, and each panel passes all of them; what is done with the sums is a
function of its own where its constants and the sums do not fit the registers together."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load, reduce
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I8, I32
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.interpret import LoopMemory
from tosaic.lowering.loops.interpret_steps import run_tasks
from tosaic.lowering.loops.ir import For, Let, LoadFrom, Prefetch, walk
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.contraction.micro_kernels import dot4
from tosaic.lowering.schedule.contraction.register_tile import Tile
from tosaic.lowering.schedule.parallelize import MAX_DIVIDED_DEPTH, divide
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv, rescale
from ..threads.cases import fine  # noqa: F401  a fixture
from .kernels import TARGETS, buffers_of, check, meaning, random_data, same
from .test_int8_contraction import CONVOLUTIONS, product

SMALL = {name: replace(TARGETS[name], l2_bytes=1 << 14) for name in ("512 bits, dot4", "256 bits, no masks, dot4")}
"""The weights are large for the cache, and the rows are not."""
DOT4 = SMALL["512 bits, dot4"]
MIDDLE = replace(DOT4, l2_bytes=33_000)
"""Groups of rows fit, and all do not."""


def kernel_of(g: Graph, value: Value) -> Kernel:
    module = g.module(value)
    (kernel,) = fuse(module, module.function("main")).kernels
    return kernel


def window() -> Kernel:
    g = Graph()
    weight = np.random.default_rng(5).integers(-127, 128, (48, 3, 3, 16)).astype(np.int8)
    x = conv(g, g.input(1, 7, 7, 16, dtype="int8"), weight, np.arange(48, dtype=np.int32), 3, pad=(1, 1, 1, 1))
    return kernel_of(g, rescale(g, x, 48, np.random.default_rng(6)))


@pytest.mark.parametrize("zero_points", [(0, 0), (3, 0), (-128, 127)], ids=str)
@pytest.mark.parametrize("shape", [(49, 96, 67), (33, 150, 64), (17, 65, 131)], ids=str)
def test_a_product_of_rows_together_is_exact(shape: tuple[int, int, int], zero_points: tuple[int, int]) -> None:
    k = product(*shape, "int8", zero_points, bias=True)
    assert "dot4" in describe(k, DOT4) and "columns outermost" in describe(k, DOT4)
    check([k], targets=SMALL, interpret=shape == (17, 65, 131))


def test_a_window_of_rows_together_is_exact() -> None:
    k = window()
    assert "dot4" in describe(k, DOT4) and "columns outermost" in describe(k, DOT4)
    check([k], targets=SMALL)


@pytest.mark.parametrize("zero_points", [(0, 0), (3, -7)], ids=str)
@pytest.mark.parametrize(("rows", "constant"), [(480, True), (427, True), (480, False)])
def test_a_product_of_groups_of_rows_is_exact(rows: int, constant: bool, zero_points: tuple[int, int]) -> None:
    k, each = product(rows, 200, 67, "int8", zero_points, bias=True, constant=constant), {480: 60, 427: 61}[rows]
    assert f"in groups of {each} rows" in describe(k, MIDDLE)
    assert {b.size for b in schedule(k, MIDDLE).scratch if b.name == "y.rows"} == {each * 68}
    check([k], targets={name: replace(t, l2_bytes=MIDDLE.l2_bytes) for name, t in SMALL.items()}, interpret=False)


def test_rows_of_a_group_do_not_share_cache_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot4, "choose_tile", lambda *_: Tile(4, 2))
    k, target = product(128, 48, 2048, "int8", (0, 0)), replace(DOT4, l2_bytes=1 << 18)
    assert "in groups of 16 rows" in describe(k, target)
    assert {b.size for b in schedule(k, target).scratch if b.name == "y.rows"} == {15 * (2048 + 64) + 2048}
    check([k], targets={"large": target}, interpret=False)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_is_exact_where_the_cache_is_small(name: str) -> None:
    g = Graph()
    check([kernel_of(g, CONVOLUTIONS[name](g))], targets=SMALL, interpret=False)


def test_rows_that_do_not_fit_the_cache_are_packed_tile_by_tile() -> None:
    k = product(199, 96, 67, "int8", (0, 0))
    assert "rows outermost" in describe(k, DOT4)
    assert max(b.size for b in schedule(k, DOT4).scratch) < 199 * 67


def test_panels_are_prefetched() -> None:
    k = product(49, 96, 67, "int8", (0, 0))
    asked = {s.address.buffer.name for s in walk(schedule(k, DOT4).body) if isinstance(s, Prefetch)}
    assert "y.packed" in asked


@pytest.mark.parametrize("kernel", [product(60, 192, 128, "int8", (3, 0)), window()], ids=["product", "window"])
@pytest.mark.usefixtures("fine")
def test_threads_share_rows_first_and_panels_then(kernel: Kernel) -> None:
    check_divided(kernel, DOT4, 2)


@pytest.mark.usefixtures("fine")
def test_threads_share_groups() -> None:
    check_divided(product(480, 200, 67, "int8", (3, 0)), MIDDLE, 1)


def check_divided(kernel: Kernel, target: Target, phases: int) -> None:
    function = divide(schedule(kernel, target, keeps=MAX_DIVIDED_DEPTH), 2, target.costs)
    assert function is not None and len(function.phases) == phases
    verify(function)
    data = {b: random_data(b.shape, b.dtype, np.random.default_rng(1)) for b in buffers_of(kernel)}
    memory = LoopMemory()
    for b, array in data.items():
        if b is not kernel.out:
            memory.add(b, array)
    run_tasks(function, 2, memory)
    same(memory.array(kernel.out), meaning(kernel, data), "2 parts")


def residual(channels: int) -> Kernel:
    """A sum of two tensors of bytes, one of them a convolution: three rescales."""
    g = Graph()
    rng = np.random.default_rng(2)
    weight = rng.integers(-127, 128, (channels, 1, 1, 64)).astype(np.int8)
    x = conv(g, g.input(1, 14, 14, 64, dtype="int8"), weight, np.arange(channels, dtype=np.int32), 3)
    one, other = rescale(g, x, channels, rng), g.input(1, 14, 14, channels, dtype="int8")

    def widened(value: Value, number: int, zero_point: int) -> Value:
        return g.op("rescale", value, np.array([number], np.int32), np.array([12], np.int8), np.array([zero_point], np.int8),
                    np.zeros(1, np.int32), scale32=True, rounding_mode="SINGLE_ROUND", per_channel=False,
                    input_unsigned=False, output_unsigned=False, to=I32)

    total = g.op("add", widened(one, 1188116479, -5), widened(other, 1508776004, -128))
    return kernel_of(g, g.op(
        "rescale", total, np.array([1637093151], np.int32), np.array([50], np.int8), np.zeros(1, np.int32),
        np.array([-128], np.int8), scale32=True, rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=False,
        output_unsigned=False, to=I8))


def test_constants_of_what_is_done_with_many_sums_take_none_of_their_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot4, "choose_tile", lambda *_: Tile(14, 2))
    k, t = residual(64), TARGETS["512 bits, dot4"]
    lines = emit_functions([schedule(k, t)], t).definitions
    defined = [line for line in lines if line.startswith("define internal void @loop.")]
    called = [line for line in lines if line.startswith(" call void @loop.")]
    assert len(defined) == len(called) == 1
    assert defined[0].split("(")[0].split("@")[1] == called[0].split("(")[0].split("@")[1]
    check([k], targets={name: TARGETS[name] for name in (*SMALL, "512 bits")}, interpret=False)


def test_few_sums_leave_registers_for_constants() -> None:
    g = Graph()
    t = TARGETS["512 bits, dot4"]
    k = kernel_of(g, CONVOLUTIONS["5x1 far padded"](g))
    assert not any("@loop." in line for line in emit_functions([schedule(k, t)], t).definitions)


def rescaled(places: int, depth: int) -> Kernel:
    """A product of bytes with one exact rescale for each channel."""
    g = Graph()
    rng = np.random.default_rng(3)
    weight = rng.integers(-127, 128, (64, 1, 1, depth)).astype(np.int8)
    x = conv(g, g.input(1, places, places, depth, dtype="int8"), weight, np.arange(64, dtype=np.int32), 3)
    return kernel_of(g, rescale(g, x, 64, rng))


@pytest.mark.parametrize(("places", "depth", "is_loop"), [(14, 256, True), (14, 32, False), (200, 256, False)])
def test_a_long_rescale_is_a_loop_where_sums_are_long_and_vectors_few(
        places: int, depth: int, is_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot4, "choose_tile", lambda *_: Tile(6, 4))
    k, t = rescaled(places, depth), TARGETS["512 bits, dot4"]
    function = schedule(k, t)
    assert any(b.name.endswith(".sums") for b in function.scratch) == is_loop
    if is_loop:
        tables = [s for s in walk(function.body) if isinstance(s, Let) and s.op == "multiply_high_nudged"]
        assert len(tables) <= 3 * 4, "for four vectors, once for each shape of tile"
        check([k], targets={name: TARGETS[name] for name in (*SMALL, "512 bits")}, interpret=False)


def test_another_sum_beside_a_loop_over_vectors_is_exact() -> None:
    k = product(40, 64, 128, "int8", (0, 0))
    j = Axis("j", 5)
    value = k.value + reduce("add", (j,), Load(Buffer("z", "int32", (5,), "argument"), (Affine.of(j),)))
    for i in range(40):
        value = value * 3 + i
    k = replace(k, value=value)
    assert any(b.name.endswith(".sums") for b in schedule(k, DOT4).scratch)
    check([k], targets=SMALL)


def test_what_is_the_same_for_all_rows_of_a_loop_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot4, "choose_tile", lambda *_: Tile(7, 4))
    function = schedule(rescaled(14, 256), TARGETS["512 bits, dot4"])
    loops = [s for s in walk(function.body) if isinstance(s, For) and not any(isinstance(x, For) for x in walk(s.body))]
    (row,) = [s for s in loops if any(isinstance(x, Let) and x.op.startswith("multiply_high") for x in s.body)]
    read = {s.address.buffer.name for s in row.body if isinstance(s, LoadFrom)}
    assert read and all(name.endswith(".sums") for name in read)
