"""What neighbouring lanes share, some at a time: depthwise convolutions with several filters a channel, and other values that
are read at a quotient of an axis. They are loaded once and put in place by shuffles, and gathered nowhere."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis, Computed
from tosaic.lowering.elements.expression import Buffer, Const, Expr, IndexValue, Load, apply
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import Function, GatherFrom, Let, Shuffle, walk
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.nest.index_arithmetic import value_bounds
from tosaic.lowering.schedule.nest.quotient_axes import division, put_together, shared_by
from tosaic.lowering.schedule.vectorize.lane_groups import group_of, repeats, whole_groups

from ..fuse.graphs import Graph, conv, rescale
from .kernels import TARGETS, V2, V3, V4, check


@dataclass(frozen=True)
class Case:
    """Rows, columns and channels of the input, filters of each channel, and the window."""
    shape: tuple[int, int, int]
    filters: int
    dtype: str = "float32"
    kernel: tuple[int, int] = (3, 3)
    pad: tuple[int, int, int, int] = (1, 1, 1, 1)
    stride: tuple[int, int] = (1, 1)
    zero_point: int = 0
    rescaled: bool = False

    def kernels(self) -> tuple[Kernel, ...]:
        g, rng = Graph(), np.random.default_rng(7)
        x, outputs = g.input(1, *self.shape, dtype=self.dtype), self.shape[2] * self.filters
        dims = *self.kernel, self.shape[2], self.filters
        if self.dtype == "float32":
            weight, bias = (rng.integers(-6, 7, n).astype(np.float32) / 2 for n in (dims, outputs))
        else:
            weight, bias = rng.integers(-128, 128, dims).astype(np.int8), rng.integers(-99, 99, outputs).astype(np.int32)
        y = conv(g, x, weight, bias, self.zero_point, "depthwise_conv2d", self.pad, self.stride)
        module = g.module(rescale(g, y, outputs, rng) if self.rescaled else y)
        return fuse(module, module.function("main")).kernels


CASES = {
    "two filters": Case((5, 9, 20), 2),
    "three filters": Case((4, 6, 32), 3),
    "three filters of few channels": Case((5, 6, 3), 3),
    "four filters": Case((5, 5, 16), 4, stride=(2, 1)),
    "five filters, tiles that overlap": Case((4, 5, 7), 5, pad=(0, 0, 0, 0)),
    "six filters of bytes": Case((4, 5, 10), 6, "int8", zero_point=3),
    "seven filters by one row": Case((1, 20, 5), 7, "int8", (1, 3), (0, 0, 1, 1)),
    "eight filters": Case((3, 4, 8), 8, "int8", zero_point=-4, rescaled=True),
    "more filters than lanes": Case((3, 4, 3), 17),
    "many filters": Case((3, 4, 2), 70, "int8"),
    "a single place": Case((4, 7, 6), 7, kernel=(1, 1), pad=(0, 0, 0, 0)),
    "bytes at a single place": Case((4, 7, 40), 2, "int8", (1, 1), (1, 0, 0, 1), zero_point=5),
    "one channel": Case((5, 6, 1), 4),
    "one pixel": Case((3, 3, 12), 3, pad=(0, 0, 0, 0)),
    "more padding than image": Case((2, 3, 6), 4, kernel=(5, 5), pad=(4, 4, 4, 4)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_filters_of_a_channel_share_its_pixels(name: str) -> None:
    check(CASES[name].kernels())


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 12), st.integers(2, 20), st.integers(1, 6), st.sampled_from(["float32", "int8"]), st.booleans())
def test_any_number_of_filters(channels: int, filters: int, width: int, dtype: str, padded: bool) -> None:
    pad = (1, 1, 1, 1) if padded else (0, 0, 0, 0)
    case = Case((3, width + 2, channels), filters, dtype, pad=pad, zero_point=2 if dtype == "int8" else 0)
    check(case.kernels(), interpret=False)


# ---- the code --------------------------------------------------------------------------------------------------------
GATHERING = {"512 bits": V4, "256 bits": V3, "128 bits": V2}


def statements(f: Function, kind: type) -> int:
    return sum(isinstance(s, kind) for s in walk(f.body))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("vectors", GATHERING)
def test_nothing_is_gathered_nor_clamped(name: str, vectors: str) -> None:
    for k in CASES[name].kernels():
        f = schedule(k, GATHERING[vectors])
        assert not statements(f, GatherFrom)
        clamps = [s for s in walk(f.body) if isinstance(s, Let) and s.op in ("max", "min") and s.result.type.dtype == "int32"]
        assert not clamps or CASES[name].rescaled


def test_a_tile_has_whole_groups() -> None:
    (k,) = CASES["three filters"].kernels()
    assert "vectors of 16, in groups of 3" in describe(k, V4)
    assert statements(schedule(k, V4), Shuffle)


def test_where_there_are_no_vectors_nothing_is_divided() -> None:
    (k,) = CASES["three filters"].kernels()
    f = schedule(k, TARGETS["scalar"])
    assert not [s for s in walk(f.body) if isinstance(s, Let) and s.op == "div"]


def upsampled(extent: int, by: int, more: int) -> Kernel:
    """Each element several times, and something for each place."""
    i, j = Axis("i", 3), Axis("j", extent * by - more)
    x, y = Buffer("x", "int8", (3, extent), "argument"), Buffer("y", "int8", (j.extent,), "argument")
    quotient = Affine.of(Computed(apply("div", IndexValue(Affine.of(j)), by), extent))
    value = apply("add", apply("mul", Load(x, (Affine.of(i), quotient)), 3), Load(y, (Affine.of(j),)))
    return Kernel(Buffer("z", "int8", (i.extent, j.extent), "result"), (i, j), value)


@pytest.mark.parametrize("extent, by, more", [(64, 2, 0), (50, 3, 1), (9, 4, 2), (20, 5, 0), (3, 40, 7)])
def test_each_element_several_times(extent: int, by: int, more: int) -> None:
    k = upsampled(extent, by, more)
    check([k])
    assert not statements(schedule(k, V4), GatherFrom)


# ---- what is known of quotients --------------------------------------------------------------------------------------
def parts(index: Affine, by: int, quotients: int) -> tuple[Affine, Affine]:
    value = IndexValue(index)
    q = apply("div", value, by)
    return Affine.of(Computed(q, quotients)), Affine.of(Computed(value - q * by, by))


def test_a_quotient_and_its_remainder_are_what_was_divided() -> None:
    i, k = Axis("i", 30), Axis("k", 3)
    q, r = parts(Affine.of(i), 5, 6)
    whole = Affine.of(k) * 30 + q * 10 + r * 2 + 7
    assert put_together(whole.terms, whole.const) == Affine.of(k) * 30 + Affine.of(i) * 2 + 7
    divided = q * 9 + r
    assert put_together(divided.terms, divided.const) == divided


def test_a_quotient_that_is_clamped_stays() -> None:
    i = Axis("i", 30)
    q, r = parts(Affine.of(i), 5, 4)
    assert division(q.terms[0][0]) is None
    assert put_together((q * 5 + r).terms, 0) == q * 5 + r
    below, _ = parts(Affine.of(i) - 1, 5, 6)
    assert division(below.terms[0][0]) is None


def test_bounds_of_quotients_and_remainders() -> None:
    value: Expr = IndexValue(Affine.of(Axis("i", 30)) + 2)
    q = apply("div", value, 4)
    assert (value_bounds(value), value_bounds(q), value_bounds(value - q * 4)) == ((2, 31), (0, 7), (0, 3))
    assert value_bounds(value - q * 3) == value_bounds(Load(Buffer("x", "int32", (1,)), (Affine(),)))


def test_an_index_is_shared_by_one_division_alone() -> None:
    i, k = Axis("i", 30), Axis("k", 3)
    q, _ = parts(Affine.of(i), 5, 6)
    found = shared_by(q * 3 + k, i)
    assert found and (found.source, found.by) == (Affine.of(i), 5)
    other, _ = parts(Affine.of(i), 3, 10)
    double, _ = parts(Affine.of(i) * 2, 5, 12)
    assert shared_by(q + i, i) is shared_by(q + other, i) is shared_by(double, i) is None


def test_the_largest_shared_values_are_found() -> None:
    i = Axis("i", 30)
    x, y = Buffer("x", "int32", (6,)), Buffer("y", "int32", (30,))
    q, _ = parts(Affine.of(i), 5, 6)
    shared = apply("mul", Load(x, (q,)), 3) + Load(x, (q,))
    value = shared * Load(y, (Affine.of(i),)) + Const(1, "int32")
    found = repeats(value, i)
    assert [r.value for r in found.values()] == [shared]
    assert group_of(found) == 5
    assert [whole_groups(size, 5) for size in (4, 16, 32)] == [5, 15, 30]
