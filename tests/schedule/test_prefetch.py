"""Contractions whose panels are asked for before they are read: convolutions of every shape are right, by rows too; what is
asked for is the next panel, all of it; and what the epilogue adds, and where it writes."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Const, Load, apply, guard, reduce
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import Function, Prefetch, walk
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.contraction.pattern import Contraction
from tosaic.lowering.schedule.contraction.prefetch import MAX_TILES_OF_PANEL, Prefetching
from tosaic.lowering.schedule.contraction.recognise import recognise
from tosaic.lowering.schedule.nest.loop_nest import flatten
from tosaic.lowering.schedule.nest.tile_axis import pieces
from tosaic.lowering.target.presets import target

from .kernels import TARGETS, V4, check

SMALL = {name: replace(t, l1_bytes=1 << 10, block_bytes=1 << 11, l2_bytes=3 << 10) for name, t in TARGETS.items()
         if t.vector_bytes >= 16}
"""Machines for whose caches the weights of little convolutions are large."""
FEW = {name: SMALL[name] for name in ("512 bits, dot4", "256 bits, no masks, dot4")}
RNG = np.random.default_rng(17)
LINE = V4.costs.cache_line_bytes


@dataclass(frozen=True)
class Window:
    height: int = 5
    width: int = 7
    channels: int = 3
    filters: int = 37
    size: int = 3
    stride: int = 1
    dilation: int = 1
    pad: int = 1
    images: int = 1

    def out(self, extent: int) -> int:
        return (extent + 2 * self.pad - self.dilation * (self.size - 1) - 1) // self.stride + 1


def convolution(w: Window, epilogue: bool = False, dtype: str = "float32") -> Kernel:
    """relu(x * weights + bias + other), or the sums alone."""
    p, i, j, f = Axis("p", w.images), Axis("i", w.out(w.height)), Axis("j", w.out(w.width)), Axis("f", w.filters)
    y, x, c = Axis("y", w.size), Axis("x", w.size), Axis("c", w.channels)
    weights = Buffer("w", dtype, (w.filters, w.size, w.size, w.channels), "constant",
                     (RNG.integers(-6, 7, (w.filters, w.size, w.size, w.channels)) / 2).astype(dtype))
    row = Affine.of(i) * w.stride + Affine.of(y) * w.dilation - w.pad
    column = Affine.of(j) * w.stride + Affine.of(x) * w.dilation - w.pad
    image = Buffer("x", dtype, (w.images, w.height, w.width, w.channels), "argument")
    inside = [r for r in (Range(row, 0, w.height), Range(column, 0, w.width)) if r.known is not True]
    read = Load(image, (Affine.of(p), row, column, Affine.of(c)))
    value = reduce("add", (y, x, c), (guard(inside, read, 0) if inside else read) * Load(
        weights, tuple(map(Affine.of, (f, y, x, c)))))
    axes = (p, i, j, f)
    shape = tuple(a.extent for a in axes)
    if epilogue:
        bias = Load(Buffer("bias", dtype, (w.filters,), "argument"), (Affine.of(f),))
        other = Load(Buffer("other", dtype, shape, "argument"), tuple(map(Affine.of, axes)))
        value = apply("max", value + bias + other, Const(0, dtype))
    return Kernel(Buffer("out", dtype, shape, "result"), axes, value)


def asked(f: Function) -> set[str]:
    """Buffers of which a function asks for something."""
    return {s.address.buffer.name for s in walk(f.body) if isinstance(s, Prefetch)}


CASES = {
    "3x3": convolution(Window()),
    "3x3 and an epilogue": convolution(Window(channels=8), epilogue=True),
    "strides": convolution(Window(height=9, width=8, stride=2), epilogue=True),
    "dilations": convolution(Window(height=4, width=9, dilation=2, pad=2)),
    "no border": convolution(Window(pad=0, filters=70)),
    "1x1": convolution(Window(size=1, pad=0, channels=70), epilogue=True),
    "1x1 with strides": convolution(Window(size=1, pad=0, stride=2, channels=40, filters=33), epilogue=True),
    "two images": convolution(Window(height=5, images=2, channels=12), epilogue=True),
    "one panel": convolution(Window(filters=16, channels=5)),
    "doubles": convolution(Window(height=3), dtype="float64"),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_right(name: str) -> None:
    check([CASES[name]], targets=FEW, interpret=name in ("3x3", "strides"))


@pytest.mark.parametrize("name", [n for n in CASES if n != "doubles"])
def test_the_cases_prefetch(name: str) -> None:
    assert describe(CASES[name], SMALL["512 bits"]).endswith("panels prefetched")
    assert any(n.endswith(".packed") for n in asked(schedule(CASES[name], SMALL["512 bits"])))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.builds(Window, height=st.integers(3, 9), width=st.integers(3, 17), channels=st.integers(1, 20),
                 filters=st.integers(1, 80), size=st.integers(1, 3), stride=st.integers(1, 3), dilation=st.integers(1, 2),
                 pad=st.integers(1, 2), images=st.integers(1, 2)), st.booleans())
def test_convolutions_of_any_shape_are_right(w: Window, epilogue: bool) -> None:
    if min(w.out(w.height), w.out(w.width)) > 0:
        check([convolution(w, epilogue)], targets=FEW, interpret=False)


# ---- choices -----------------------------------------------------------------------------------------------------
HOST_LIKE = replace(V4, l1_bytes=48 << 10, block_bytes=1 << 20)


@pytest.mark.parametrize(("w", "expected"), [
    (Window(7, 7, 512, 512), "columns outermost, panels prefetched"),
    (Window(14, 14, 256, 256), "columns outermost, panels prefetched"),
    (Window(56, 56, 64, 64), "rows outermost"),
    (Window(28, 28, 128, 128), "columns outermost"),
    (Window(14, 14, 1024, 2048, 1, 2, pad=0), "columns outermost, panels prefetched"),
    (Window(14, 14, 512, 512, 1, pad=0), "columns outermost, panels prefetched"),
    (Window(14, 14, 1024, 256, 1, pad=0), "columns outermost, panels prefetched"),
    (Window(14, 14, 2048, 256, 1, pad=0), "rows copied along k"),
])
def test_large_weights_pass_through_the_cache_once(w: Window, expected: str) -> None:
    assert describe(convolution(w), HOST_LIKE).endswith(expected)


def test_a_single_row_leaves_no_time_to_ask() -> None:
    assert "prefetched" not in describe(convolution(Window(1, 1, 1280, 1000, 1, pad=0)), HOST_LIKE)


@pytest.mark.parametrize("name", ["thumbv7em", "riscv32"])
def test_machines_without_caches_ask_for_nothing(name: str) -> None:
    assert not asked(schedule(CASES["3x3 and an epilogue"], target(name)))


def test_what_the_epilogue_adds_and_writes_is_asked_for_where_it_is_large() -> None:
    w = Window(14, 14, 256, 1024, 1, pad=0)
    assert {"other", "out"} <= asked(schedule(convolution(w, epilogue=True), HOST_LIKE))
    assert asked(schedule(convolution(replace(w, filters=64), epilogue=True), HOST_LIKE)) <= {"out.packed"}
    assert "bias" not in asked(schedule(convolution(w, epilogue=True), HOST_LIKE))


# ---- arithmetic --------------------------------------------------------------------------------------------------
@dataclass
class Recorder:
    """A builder that only writes down what is asked for."""
    places: list[tuple[Buffer, int]] = field(default_factory=list)

    def prefetch(self, buffer: Buffer, index: Affine) -> None:
        assert not index.terms
        self.places.append((buffer, index.const))


def pattern_of(kernel: Kernel) -> Contraction:
    found = recognise(flatten(kernel), False)
    assert found is not None
    return found


@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 40), st.integers(1, 9), st.sampled_from([16, 32, 64]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_all_tiles_of_a_panel_prefetch_the_next_one(height: int, width: int, channels: int, rows: int, columns: int) -> None:
    """With tiles of at most `rows` rows each line of the next panel is prefetched; a panel has depth times columns elements."""
    pattern = pattern_of(
        convolution(Window(height, width, channels + 1, 2 * columns, 2, pad=0 if min(height, width) > 2 else 1))
    )
    packed = Buffer(
        "packed", "float32", (2 * pattern.depth * columns,), "constant", np.zeros(2 * pattern.depth * columns, "f4")
    )
    recorder: Any = Recorder()
    prefetching, vectors, zero = Prefetching(recorder, pattern, packed, (), 1, LINE), pieces(columns, 16, True), Affine()
    (outer,) = pattern.outer
    assert pattern.m is not None
    for i in range(outer.extent):
        for j in range(0, pattern.m.extent, rows):
            for k in range(pattern.depth):
                prefetching.panel(
                    {outer: zero + i, pattern.m: zero + j, pattern.n: zero}, zero + k, min(rows, pattern.m.extent - j), vectors
                )
    lines = {place * 4 // LINE for _, place in recorder.places}
    panel = pattern.depth * columns * 4 // LINE
    assert set(range(panel, 2 * panel)) <= lines
    assert len(lines) <= 1.5 * panel + pattern.passes + 8, "hardly anything else"


def test_few_tiles_are_those_for_which_the_first_one_counts() -> None:
    for count, expected in ((MAX_TILES_OF_PANEL, True), (MAX_TILES_OF_PANEL + 1, False)):
        k = convolution(Window(1, 14 * count, 512, 512, 1, pad=0))
        assert ("prefetched" in describe(k, replace(HOST_LIKE, l2_bytes=1 << 19))) == expected

