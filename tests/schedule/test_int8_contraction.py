"""Products of bytes: constant and run-time operands, zero points, ends of every axis, on every unit that there is for them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load, cast, reduce
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I32
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.interpret import LoopMemory
from tosaic.lowering.loops.interpret_steps import run_tasks
from tosaic.lowering.loops.ir import Let, LoadFrom, MultiplyTiles, ShapeTiles, walk
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.schedule import describe, lower, schedule
from tosaic.lowering.schedule.contraction import matrix_tiles
from tosaic.lowering.schedule.contraction.int8 import amx_choose
from tosaic.lowering.schedule.nest.tile_axis import Tiles
from tosaic.lowering.schedule.parallelize import MAX_DIVIDED_DEPTH, divide
from tosaic.lowering.schedule.schedule import divided
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.target.costs import COSTS
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv, rescale
from ..threads.cases import fine  # noqa: F401  a fixture
from .kernels import TARGETS, V3, buffers_of, check, meaning, random_data, same

DOT4 = TARGETS["512 bits, dot4"]
TILES = replace(DOT4, matrix_unit=("int8",), features=DOT4.features + ",+amx-tile,+amx-int8", block_bytes=1 << 13)
"""The cache is small, so that columns are done in groups."""
UNITS: dict[str, Target] = {name: TARGETS[name] for name in ("512 bits, dot4", "256 bits, no masks, dot4")} | {
    "256 bits, no masks": V3}
SHAPES = [(1, 5, 7, 9), (2, 33, 47, 65), (1, 64, 64, 64), (3, 17, 130, 100), (1, 31, 33, 127), (2, 40, 15, 3)]
"""Batch, rows, columns, terms."""
Shape = tuple[int, int, int, int]
ZERO_POINTS = [(0, 0), (3, 0), (0, -5), (-128, 127)]
RNG = np.random.default_rng(3)


@pytest.fixture
def always_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles even where products are too small for them."""
    monkeypatch.setattr(amx_choose, "cycles_of_dot4", lambda *_: float("inf"))


def matmul(g: Graph, shape: Shape, zero_points: tuple[int, int], turned: bool) -> Value:
    batch, rows, columns, terms = shape
    b = g.input(batch, *((columns, terms) if turned else (terms, columns)), dtype="int8")
    if turned:
        b = g.op("transpose", b, perms=(0, 2, 1))
    a = g.input(batch, rows, terms, dtype="int8")
    return g.op("matmul", a, b, *(np.array([z], np.int8) for z in zero_points))


def kernels_of(g: Graph, value: Value) -> tuple[Kernel, ...]:
    module = g.module(value)
    return fuse(module, module.function("main")).kernels


def product(m: int, n: int, k: int, dtype: str, zero_points: tuple[int, int], bias: bool = False,
            constant: bool = True) -> Kernel:
    """x[m, k] * w[n, k]."""
    i, j, l = Axis("m", m), Axis("n", n), Axis("k", k)
    x = Load(Buffer("x", dtype, (m, k), "argument"), (Affine.of(i), Affine.of(l)))
    data = RNG.integers(-128, 128, (n, k)).astype(np.int8)
    w = Load(Buffer("w", "int8", (n, k), *(("constant", data) if constant else ("argument",))), (Affine.of(j), Affine.of(l)))
    factors = [cast(e, "int32") - z if z else cast(e, "int32") for e, z in zip((x, w), zero_points)]
    value = reduce("add", (l,), factors[0] * factors[1])
    if bias:
        biases = RNG.integers(-999, 999, n).astype(np.int32)
        value = value + Load(Buffer("bias", "int32", (n,), "constant", biases), (Affine.of(j),))
    return Kernel(Buffer("y", "int32", (m, n), "result"), (i, j), value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("zero_points", ZERO_POINTS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_product_of_run_time_bytes_is_exact(shape: Shape, zero_points: tuple[int, int], turned: bool) -> None:
    g = Graph()
    check(kernels_of(g, matmul(g, shape, zero_points, turned)), targets=UNITS, interpret=np.prod(shape) < 9000)


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("zero_points", ZERO_POINTS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.usefixtures("always_tiles")
def test_a_product_of_run_time_bytes_by_tiles_is_exact(shape: Shape, zero_points: tuple[int, int], turned: bool) -> None:
    g = Graph()
    kernels = kernels_of(g, matmul(g, shape, zero_points, turned))
    assert "contraction: tiles" in describe(kernels[-1], TILES)
    check(kernels, targets={"512 bits, dot4": TILES}, interpret=np.prod(shape) < 140_000)


@pytest.mark.parametrize("zero_point", [0, 3])
@pytest.mark.parametrize(("out", "channels"), [(12, 8), (17, 4), (40, 16)])
def test_weights_that_come_at_run_time_are_packed_column_by_column(out: int, channels: int, zero_point: int) -> None:
    g = Graph()
    x, w = g.input(1, 6, 7, channels, dtype="int8"), g.input(out, 2, 3, channels, dtype="int8")
    zeros = np.array([zero_point], np.int8), np.array([0], np.int8)
    sums = g.op("conv2d", x, w, np.arange(out, dtype=np.int32), *zeros, pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1),
                acc_type=I32)
    kernels = kernels_of(g, sums)
    assert "contraction: dot4" in describe(kernels[-1], DOT4)
    read = [s for s in walk(schedule(kernels[-1], DOT4).body)
            if isinstance(s, LoadFrom) and s.address.buffer.shape == (out, 2, 3, channels)]
    assert 0 < len(read) <= -(-out // 16)
    check(kernels, targets=UNITS)
    check(kernels, targets={"512 bits, dot4": TILES}, interpret=False)


def test_the_last_block_of_rows_has_no_code_of_its_own() -> None:
    assert matrix_tiles.blocks_of(658, 32, again=True) == [Tiles(0, 32, 21, 14)]
    assert matrix_tiles.blocks_of(658, 32) == [Tiles(0, 32, 20), Tiles(626, 32, 1)]
    assert matrix_tiles.blocks_of(70, 32, [0], again=True) == [Tiles(0, 32, 1), Tiles(32, 32, 2, 26)]
    assert matrix_tiles.blocks_of(70, 32, [38], again=True) == [Tiles(0, 32, 2), Tiles(38, 32, 1)]


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("zero_points", ZERO_POINTS, ids=str)
@pytest.mark.parametrize(("shape", "dtype"), [
    ((49, 40, 96), "int8"), ((33, 16, 64), "uint8"), ((7, 24, 20), "int8"), ((64, 65, 131), "int8"), ((5, 48, 18), "uint8"),
    ((70, 30, 512), "int8"), ((2, 3, 4), "int8"), ((37, 48, 1100), "int8"), ((64, 128, 256), "int8")], ids=str)
@pytest.mark.usefixtures("always_tiles")
def test_a_product_with_constant_bytes_is_exact(shape: tuple[int, int, int], dtype: str, zero_points: tuple[int, int],
                                                bias: bool) -> None:
    if dtype == "uint8":
        zero_points = zero_points[0] % 256, zero_points[1]
    kernel = product(*shape, dtype, zero_points, bias)
    assert "contraction: tiles" in describe(kernel, TILES)
    small = np.prod(shape) < 150_000
    check([kernel], targets={"512 bits, dot4": TILES}, interpret=bool(small))
    check([kernel], targets={"512 bits, dot4": DOT4}, interpret=False)


@pytest.mark.parametrize("columns", [2, 3, 5, 18])
def test_a_few_columns_have_sums_enough_for_the_instruction(columns: int) -> None:
    kernel = product(9, columns, 37, "int8", (3, -5), bias=True)
    lanes = {s.result.type.lanes for s in walk(schedule(kernel, DOT4).body) if isinstance(s, Let) and s.op == "dot4"}
    assert lanes
    assert min(lanes) >= 4
    check([kernel], targets={"512 bits, dot4": DOT4})


def window(channels: int, out: int, size: tuple[int, int], image: tuple[int, int] = (9, 13), zero_point: int = 3,
           batch: int = 1, **how: tuple[int, ...]) -> Callable[[Graph], Value]:
    def build(g: Graph) -> Value:
        weight = RNG.integers(-127, 128, (out, *size, channels)).astype(np.int8)
        bias = RNG.integers(-999, 999, out).astype(np.int32)
        x = conv(g, g.input(batch, *image, channels, dtype="int8"), weight, bias, zero_point, **how)
        return rescale(g, x, out, RNG)
    return build


CONVOLUTIONS: dict[str, Callable[[Graph], Value]] = {
    "1x1": window(72, 40, (1, 1)), "1x1 of 3": window(3, 17, (1, 1)), "1x1 s2": window(64, 33, (1, 1), stride=(2, 2)),
    "3x3": window(16, 24, (3, 3)), "3x3 padded": window(16, 40, (3, 3), pad=(1, 1, 1, 1)),
    "3x3 s2 padded": window(5, 24, (3, 3), (10, 14), -128, pad=(0, 1, 0, 1), stride=(2, 2)),
    "3x3 dilated": window(8, 16, (3, 3), pad=(2, 2, 2, 2), dilation=(2, 2)),
    "3x3 of 7x7": window(64, 33, (3, 3), (7, 7), pad=(1, 1, 1, 1)),
    "3x3 of 14x14, batch": window(16, 24, (3, 3), (14, 14), batch=2, pad=(1, 1, 1, 1)),
    "3x3 s2 of 10x5, batch": window(8, 40, (3, 3), (10, 5), -7, 3, pad=(1, 0, 1, 1), stride=(2, 2)),
    "5x1 far padded": window(4, 16, (5, 1), pad=(4, 4, 0, 0)), "1x7 wide": window(4, 16, (1, 7), (2, 70), pad=(0, 0, 3, 3)),
}


PACKED_ROWS: dict[str, Callable[[Graph], Value]] = {
    "wide border": window(13, 9, (3, 3), (5, 44), -7, pad=(0, 0, 9, 0), dilation=(1, 2)),
    "both borders": window(8, 12, (2, 2), (7, 22), pad=(1, 2, 9, 9), dilation=(3, 1)),
    "all around": window(5, 3, (3, 3), (7, 21), 100, 2, pad=(2, 2, 2, 2), stride=(2, 1)),
}


@pytest.mark.parametrize("name", PACKED_ROWS)
def test_small_convolutions_of_bytes_have_one_code_for_border_and_inside(name: str) -> None:
    """Where lines of code have their full price."""
    g, dear = Graph(), replace(DOT4, costs=COSTS)
    kernels = kernels_of(g, PACKED_ROWS[name](g))
    assert "dot4" in describe(kernels[0], DOT4)
    read = [s for s in walk(schedule(kernels[0], dear).body) if isinstance(s, LoadFrom)]
    assert sum(s.address.buffer.name.endswith(".initial") for s in read) == 1
    check(kernels, targets={"512 bits, dot4": DOT4, "512 bits, dot4, dear lines": dear})


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.usefixtures("always_tiles")
def test_a_convolution_by_tiles_is_exact(name: str) -> None:
    g = Graph()
    kernels = kernels_of(g, CONVOLUTIONS[name](g))
    assert any("contraction: tiles" in describe(k, TILES) for k in kernels)
    check(kernels, targets={"512 bits, dot4": TILES}, interpret=kernels[-1].out.size < 2000)


def test_rows_of_tiles_that_fall_into_the_same_sets_of_the_cache_are_packed() -> None:
    packed_rows, direct = (schedule(product(64, 64, k, "int8", (0, 0)), TILES) for k in (4096, 4032))
    assert ["y.rows" in [b.name for b in f.scratch] for f in (packed_rows, direct)] == [True, False]


def test_rows_that_may_cross_cache_lines_are_packed_where_they_are_read_often() -> None:
    often, seldom = (schedule(product(64, n, 320, "int8", (0, 0)), TILES) for n in (128, 64))
    assert ["y.rows" in [b.name for b in f.scratch] for f in (often, seldom)] == [True, False]


def test_a_long_sum_is_done_in_chunks_of_which_rows_stay_in_the_nearest_cache() -> None:
    large = replace(TILES, block_bytes=1 << 19)
    short, long = (schedule(product(64, 64, k, "int8", (0, 0)), large) for k in (576, 2112))
    sums = [next((b.size for b in f.scratch if b.name == "y.tiles"), 0) for f in (short, long)]
    assert sums == [0, 4 * 32 * 16]  # of the panels of a group


@pytest.mark.parametrize("zero_points", ZERO_POINTS, ids=str)
@pytest.mark.parametrize("terms", [1100, 2560])
@pytest.mark.usefixtures("always_tiles")
def test_a_product_in_chunks_is_exact(terms: int, zero_points: tuple[int, int]) -> None:
    large = {"512 bits, dot4": replace(TILES, block_bytes=1 << 19)}
    kernel = product(35, 52, terms, "int8", zero_points, bias=True)
    check([kernel], targets=large, interpret=(terms, *zero_points) == (1100, 0, 0))
    g = Graph()
    check(kernels_of(g, matmul(g, (2, 33, 48, terms), zero_points, False)), targets=large, interpret=False)


def shapes_of(name: str) -> list[tuple[int, int]]:
    g = Graph()
    (kernel,) = kernels_of(g, CONVOLUTIONS[name](g))
    (shapes,) = [s.shapes for s in walk(schedule(kernel, TILES).body) if isinstance(s, ShapeTiles)]
    return list(shapes[:2])


@pytest.mark.usefixtures("always_tiles")
def test_a_block_takes_in_several_lines_of_a_small_image() -> None:
    assert [shapes_of(name) for name in ("3x3 of 7x7", "3x3 of 14x14, batch", "3x3 padded")] == [
        [(14, 64), (14, 64)], [(14, 64), (14, 64)], [(13, 64), (13, 64)]]


@pytest.mark.parametrize("shape", [(512, 512, 512), (48, 512, 2304), (20, 1024, 640)], ids=str)
def test_threads_share_blocks_of_rows_or_else_panels(shape: tuple[int, int, int]) -> None:
    _, shared = divided(product(*shape, "int8", (0, 0), bias=True), ScheduleRequest(replace(TILES, block_bytes=1 << 19)), 2)
    assert shared is not None
    function = shared.function
    assert shared.tasks.count == 2 and any(isinstance(s, MultiplyTiles) for s in walk(function.body))
    verify(function)


@pytest.mark.parametrize("shape", [(270, 80, 64), (40, 80, 96), (270, 40, 200)], ids=str)
@pytest.mark.usefixtures("always_tiles", "fine")
def test_parts_of_a_product_by_tiles_give_what_it_means(shape: tuple[int, int, int]) -> None:
    kernel, rng = product(*shape, "int8", (3, 0), bias=True), np.random.default_rng(4)
    data = {b: random_data(b.shape, b.dtype, rng) for b in buffers_of(kernel)}
    for parts in (2, 5):
        function = divide(schedule(kernel, replace(TILES, block_bytes=1 << 19), keeps=MAX_DIVIDED_DEPTH), parts, TILES.costs)
        assert function is not None
        memory = LoopMemory()
        for b, array in data.items():
            memory.add(b, array)
        run_tasks(function, parts, memory)
        same(memory.array(kernel.out), meaning(kernel, data), f"{parts} parts")


def test_short_products_keep_to_vectors() -> None:
    assert "contraction: tiles" in describe(product(512, 512, 512, "int8", (0, 0)), TILES)
    assert "contraction: dot4" in describe(product(512, 512, 8, "int8", (0, 0)), TILES)
    assert "contraction: dot4" in describe(product(512, 512, 512, "int8", (0, 0)), DOT4)


def test_loops_with_tiles_read_back() -> None:
    kernel = product(49, 40, 96, "int8", (3, 0))
    g = Graph()
    module = g.module(matmul(g, (1, 64, 64, 64), (0, 0), False))
    program = lower(fuse(module, module.function("main")), TILES)
    assert isinstance(program, Program) and any(isinstance(s, MultiplyTiles) for f in program.functions for s in walk(f.body))
    text = print_program(program, constants=True)
    assert print_program(read_program(text), constants=True) == text
    f = schedule(kernel, TILES)
    assert sum(isinstance(s, ShapeTiles) for s in walk(f.body)) == 1
