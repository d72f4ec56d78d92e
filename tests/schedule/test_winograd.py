"""Convolutions by minimal filters: the matrices are exact, errors stay inside the stated bound, and the schedule says what
takes them and why not."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tosaic
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.types import F32, Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.schedule import strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.schedule.search_space import alternatives, name_of
from tosaic.lowering.schedule.winograd import winograd
from tosaic.lowering.schedule.winograd.minimal_filter import POINTS, MinimalFilter
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, zero
from ..native.machines import runs_here
from .kernels import V2, V3, V4, Native, buffers_of, interpreted

LARGEST = 2.0**114
"""No input may be larger."""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minimal filters even where products are too few for them."""
    monkeypatch.setattr(winograd, "direct_cycles", lambda *_: float("inf"))
    monkeypatch.setattr(winograd, "MIN_TILES", 1)


def conv(shape: tuple[int, ...], w: Array, pad: tuple[int, int, int, int] = (1, 1, 1, 1), stride: int = 1, dilation: int = 1,
         clamped: bool = False) -> Kernel:
    """A convolution; `clamped` after its input is added to it."""
    g = Graph()
    x = g.input(*shape)
    made = g.op("conv2d", x, w.astype(np.float32), np.arange(w.shape[0]).astype(np.float32),
                zero("float32"), zero("float32"), pad=pad, stride=(stride, stride), dilation=(dilation, dilation), acc_type=F32)
    if clamped:
        made = g.op("clamp", g.op("add", made, x), min_val=0.0, max_val=6.0)
    module = g.module(made)
    return fuse(module, module.function("main")).kernels[-1]


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def exact(x: Array, w: Array, pad: tuple[int, int, int, int]) -> Array:
    """The convolution, with its bias, in float64."""
    padded = np.pad(x.astype(np.float64), ((0, 0), pad[:2], pad[2:], (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("nhwcij,oijc->nhwo", windows, w.astype(np.float64)) + np.arange(w.shape[0])


def bound(x: Array, w: Array, pad: tuple[int, int, int, int], size: int) -> Array:
    """What the error of each output is at most: by the largest magnitude of an input of its tile."""
    _, height, width, channels = x.shape
    rows, columns = height + sum(pad[:2]) - 2, width + sum(pad[2:]) - 2
    padded = np.pad(np.abs(x.astype(np.float64)), ((0, 0), pad[:2], pad[2:], (0, 0))).max(axis=3)
    largest = np.array([[[image[i // size * size:][:size + 2, j // size * size:][:, :size + 2].max() for j in range(columns)]
                         for i in range(rows)] for image in padded])
    weights = np.abs(w.astype(np.float64)).sum(axis=(1, 2, 3))
    f = MinimalFilter.of(size)
    own = 2.0**-23 * np.abs(exact(x, w, pad))  # of the bias
    return f.error_bound(channels, 1.0, 1.0) * largest[..., None] * weights + own


def values(kernel: Kernel, x: Array, t: Target, number: int = 0) -> Array:
    """The output, verified, by native code where this machine runs it, else by the interpreter; of one of the alternatives."""
    first, = strategies_of(kernel, ScheduleRequest(t, "winograd"))
    text = str(alternatives(first)[number])
    f = schedule(kernel, t, precision="winograd", findings=((name_of(kernel, False), (text,)),))
    verify(f)
    source, = buffers_of(kernel)
    if not runs_here(t):
        return interpreted(f, kernel, {source: x})
    native = Native([f], t)
    found = native.call(0, f, kernel, {source: x}).copy()
    native.engine.close()
    return found


# ---- the matrices ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", POINTS)
def test_a_filter_of_small_whole_numbers_is_exact(size: int) -> None:
    f, rng = MinimalFilter.of(size), np.random.default_rng(size)
    for _ in range(20):
        x, w = rng.integers(-9, 10, f.width), rng.integers(-9, 10, 3)
        found = np.array(f.outputs) @ ((np.array(f.weights) @ w) * (np.array(f.inputs) @ x))
        np.testing.assert_allclose(found, [x[i:i + 3] @ w for i in range(size)], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("size", "gain", "roundings"), [(2, 4.0, 12), (4, 14.5, 20)])
def test_the_bound_is_the_one_that_is_written(size: int, gain: float, roundings: int) -> None:
    f = MinimalFilter.of(size)
    assert f.gain == pytest.approx(gain, rel=1e-12) and f.roundings == roundings
    assert all(np.float32(x) == x for rows in (f.inputs, f.outputs) for row in rows for x in row)


# ---- values ----------------------------------------------------------------------------------------------------------
SHAPES = [((1, 8, 8, 16), 16, (1, 1, 1, 1)), ((2, 13, 11, 20), 24, (1, 1, 1, 1)), ((1, 9, 7, 3), 5, (0, 0, 0, 0)),
          ((1, 10, 14, 33), 40, (0, 2, 2, 1)), ((1, 5, 6, 64), 16, (2, 2, 2, 2))]


@pytest.mark.parametrize("t", [V4, V3, V2], ids=lambda t: f"{t.vector_bytes} bytes")
@pytest.mark.parametrize(("shape", "filters", "pad"), SHAPES, ids=str)
@pytest.mark.usefixtures("always")
def test_errors_are_those_that_are_promised(shape: tuple[int, ...], filters: int, pad: tuple[int, int, int, int],
                                            t: Target) -> None:
    x, w = normal(1, *shape) * np.exp(normal(2, *shape)), normal(3, filters, 3, 3, shape[3])
    kernel = conv(shape, w, pad)
    ways = alternatives(strategies_of(kernel, ScheduleRequest(t, "winograd"))[0])
    sizes = {way.tiling.filter: number for number, way in reversed(list(enumerate(ways)))}  # type: ignore[attr-defined]
    assert set(sizes) == set(POINTS)
    for size, number in sizes.items() if runs_here(t) else ():
        error = np.abs(values(kernel, x, t, number) - exact(x, w, pad))
        assert (error <= bound(x, w, pad, size)).all(), size
        assert error.max() > 0  # something was rounded


@pytest.mark.usefixtures("always")
def test_other_machines_have_the_same_loops() -> None:
    x, w = normal(1, 1, 5, 6, 6), normal(2, 5, 3, 3, 6)
    found = values(conv((1, 5, 6, 6), w), x, tosaic.target("aarch64"))
    assert (np.abs(found - exact(x, w, (1, 1, 1, 1))) <= bound(x, w, (1, 1, 1, 1), 4)).all()


@pytest.mark.parametrize("scale", [LARGEST, 2.0**-100, 0.0])
@pytest.mark.usefixtures("always")
def test_large_and_small_inputs_keep_the_bound(scale: float) -> None:
    x, w = np.clip(normal(1, 1, 9, 9, 8), -1, 1) * np.float32(scale), np.clip(normal(2, 8, 3, 3, 8), -1, 1)
    kernel = conv((1, 9, 9, 8), w)
    error = np.abs(values(kernel, x, V3) - exact(x, w, (1, 1, 1, 1)))
    assert (error <= bound(x, w, (1, 1, 1, 1), 4)).all()


@pytest.mark.parametrize("hostile", [np.inf, -np.inf, np.nan])
@pytest.mark.usefixtures("always")
def test_what_is_not_finite_stays_in_its_tiles(hostile: float) -> None:
    x, w = normal(1, 1, 16, 16, 8), normal(2, 8, 3, 3, 8)
    kernel = conv((1, 16, 16, 8), w)
    right = values(kernel, x, V3)
    x[0, 6, 9, 3] = hostile  # in the tiles of rows 4 to 7 and columns 8 to 11
    found = values(kernel, x, V3)
    near = np.zeros((16, 16), bool)
    near[4:8, 8:12] = True
    assert np.isnan(found[0][near]).all()
    np.testing.assert_array_equal(found[0][~near], right[0][~near])


@pytest.mark.usefixtures("always")
def test_what_is_done_with_the_sums_is_done_once() -> None:
    x, w = normal(1, 1, 9, 10, 20), normal(2, 20, 3, 3, 20)
    kernel = conv((1, 9, 10, 20), w, clamped=True)
    found, plain = values(kernel, x, V4), np.clip(exact(x, w, (1, 1, 1, 1)) + x, 0, 6)
    assert (np.abs(found - plain) <= bound(x, w, (1, 1, 1, 1), 4)).all()


@pytest.mark.usefixtures("always")
def test_the_interpreter_has_the_bits_of_native_code() -> None:
    x, w = normal(1, 1, 10, 9, 8), normal(2, 9, 3, 3, 8)
    kernel = conv((1, 10, 9, 8), w)
    f = schedule(kernel, V3, precision="winograd")
    source, = buffers_of(kernel)
    np.testing.assert_array_equal(interpreted(f, kernel, {source: x}).view(np.uint32), values(kernel, x, V3).view(np.uint32))


# ---- when it is taken ------------------------------------------------------------------------------------------------
def text_of(kernel: Kernel, t: Target = V4) -> str:
    return describe(kernel, t, "winograd")


def test_a_large_convolution_takes_a_filter() -> None:
    kernel = conv((1, 28, 28, 64), normal(1, 64, 3, 3, 64))
    assert "Winograd F(4, 3): " in text_of(kernel) and "rows of 7 tiles at a time; contraction: fma" in text_of(kernel)
    assert "Winograd" not in describe(kernel, V4)


@pytest.mark.parametrize(("kernel", "why"), [
    (conv((1, 27, 27, 64), normal(1, 64, 3, 3, 64), stride=2), "no convolution of 3 x 3 with known weights, stride 1"),
    (conv((1, 28, 28, 64), normal(1, 64, 3, 3, 64), dilation=2), "no convolution of 3 x 3 with known weights, stride 1"),
    (conv((1, 28, 28, 64), normal(1, 64, 5, 5, 64), pad=(2, 2, 2, 2)), "no convolution of 3 x 3"),
    (conv((1, 28, 28, 64), np.full((64, 3, 3, 64), np.inf)), "no convolution of 3 x 3 with known weights"),
    (conv((1, 3, 3, 256), normal(1, 256, 3, 3, 256)), "float32: that is faster"),
], ids=["strided", "dilated", "5 x 5", "infinite weights", "few places"])
def test_the_schedule_says_why_not(kernel: Kernel, why: str) -> None:
    assert "Winograd" not in text_of(kernel) and why in text_of(kernel)


def test_a_machine_without_vectors_takes_its_sums_as_they_are() -> None:
    assert "Winograd" not in text_of(conv((1, 28, 28, 64), normal(1, 64, 3, 3, 64)), replace(V2, vector_bytes=1))


def test_bits_do_not_depend_on_threads() -> None:
    w, x = normal(1, 64, 3, 3, 64), normal(2, 1, 40, 40, 64)
    zeros, z = np.zeros(64, np.float32), np.zeros(1, np.float32)
    one, two = (tosaic.jit(options=tosaic.CompileOptions(precision="winograd", threads=n))(
        lambda x: tosaic.tosa.conv2d(x, w, zeros, z, z, pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1), acc_type="f32"))
        for n in (1, 2))
    assert "Winograd" in two.lower(x).show("schedule") and "tasks" in two.lower(x).show("schedule")
    np.testing.assert_array_equal(one(x).view(np.uint32), two(x).view(np.uint32))


def test_what_takes_a_filter_is_not_tiled_by_rows_for_the_cache() -> None:
    def two(x: tosaic.Tensor) -> tosaic.Tensor:
        z = np.zeros(1, np.float32)
        for seed in range(2):
            x = tosaic.tosa.conv2d(x, normal(seed, 32, 3, 3, 32), np.zeros(32, np.float32), z, z, pad=(1, 1, 1, 1),
                                   stride=(1, 1), dilation=(1, 1), acc_type="f32")
        return x

    def schedule_with(**options: str) -> str:
        given = tosaic.CompileOptions(tosaic.target("x86-64-v4"), **options)  # type: ignore[arg-type]
        return tosaic.jit(options=given)(two).lower(tosaic.TensorSpec((1, 160, 160, 32))).show("schedule")

    assert "rows: a range at a time" in schedule_with() and "Winograd" not in schedule_with()
    assert schedule_with(precision="winograd").count("Winograd F(4, 3)") == 2
    assert "float32: it is tiled by rows" in schedule_with(precision="winograd", rows="memory")
