"""Strided transposed convolutions: their phases are iterations of a loop with one body of code."""
from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Load
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.types import F32, I32
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import For, If, walk
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.nest.padding_conditions import kept_in_range
from tosaic.lowering.schedule.nest.reduction_loops import alike
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, zero
from .kernels import TARGETS, V4, check

DOT4 = TARGETS["512 bits, dot4"]


def transposed(shape: tuple[int, ...] = (1, 6, 7, 8), filters: int = 20, kernel: tuple[int, int] = (5, 3),
               stride: tuple[int, int] = (2, 2), out_pad: tuple[int, ...] = (0, 0, 0, 0), dtype: str = "float32",
               constant: bool = True, zero_point: int = 0, cropped: tuple[int, int] = (0, 0)) -> Kernel:
    """With the first rows and columns of the result cropped."""
    g, rng, floating = Graph(), np.random.default_rng(3), dtype == "float32"
    x, dims = g.input(*shape, dtype=dtype), (filters, *kernel, shape[-1])
    known = (rng.integers(-6, 7, dims) / 2).astype(dtype) if floating else rng.integers(-127, 128, dims).astype(dtype)
    weight = known if constant else g.input(*dims, dtype=dtype)
    bias = np.arange(filters).astype("float32" if floating else "int32")
    made = g.op("transpose_conv2d", x, weight, bias, np.full(1, zero_point, dtype), zero(dtype), out_pad=out_pad,
                stride=stride, acc_type=F32 if floating else I32)
    if any(cropped):
        start = (0, *cropped, 0)
        made = g.op("slice", made, g.shape(*start), g.shape(*(n - a for n, a in zip(made.tensor.dims, start))))
    module = g.module(made)
    found, = fuse(module, module.function("main")).kernels
    return found


def statements(k: Kernel, target: Target) -> int:
    return sum(1 for _ in walk(schedule(k, target).body))


def parts(k: Kernel, target: Target) -> int:
    return len(describe(k, target).splitlines())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(("kernel", "stride", "out_pad"), [
    ((5, 3), (2, 2), (0, 0, 0, 0)), ((4, 4), (2, 2), (-1, -1, -1, -1)), ((3, 3), (2, 1), (-1, 0, 1, 2)),
    ((5, 2), (3, 2), (2, -1, 0, 0)), ((7, 1), (5, 1), (-3, 4, 0, 0)), ((2, 3), (4, 3), (1, 1, -1, 5)),
])
def test_phases_give_what_the_expression_means(kernel: tuple[int, int], stride: tuple[int, int], out_pad: tuple[int, ...],
                                               dtype: str, constant: bool) -> None:
    check([transposed(kernel=kernel, stride=stride, out_pad=out_pad, dtype=dtype, constant=constant)], interpret=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cropped", [(0, 1), (3, 2)])
@pytest.mark.parametrize("kernel", [(4, 1), (1, 1), (5, 4)])
def test_phases_whose_first_place_is_cropped_leave_it_out(kernel: tuple[int, int], cropped: tuple[int, int]) -> None:
    for dtype in ("float32", "int8"):
        check([transposed((1, 3, 3, 3), 4, kernel, (4, 3), dtype=dtype, cropped=cropped)], interpret=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_random_phases_give_what_the_expression_means(seed: int) -> None:
    r = random.Random(seed)
    kernel = r.randint(1, 6), r.randint(1, 4)
    out_pad = tuple(r.randint(1 - extent, 4) for extent in kernel for _ in range(2))
    shape = r.randint(1, 2), r.randint(1, 6), r.randint(1, 6), r.randint(1, 5)
    stride = r.randint(1, 5), r.randint(1, 3)
    if any((n - 1) * s + k + a + b < 1 for n, s, k, a, b in zip(shape[1:3], stride, kernel, out_pad[::2], out_pad[1::2])):
        out_pad = (0, 0, 0, 0)
    floating = r.random() < 0.5
    check([transposed(shape, r.choice((1, 5, 17)), kernel, stride, out_pad, "float32" if floating else "int8",
                      r.random() < 0.6, 0 if floating else r.randint(-128, 127))], seed, interpret=seed % 8 == 0)


@pytest.mark.parametrize("target", [V4, DOT4], ids=["plain", "dot4"])
@pytest.mark.parametrize(("stride", "out_pad"), [((2, 2), (0, 0, 0, 0)), ((2, 3), (-1, -1, 0, 0)), ((2, 1), (1, 0, 0, 0))])
def test_phases_are_loops_around_one_part(target: Target, stride: tuple[int, int], out_pad: tuple[int, ...]) -> None:
    for constant in (True, False):
        assert parts(transposed(stride=stride, out_pad=out_pad, constant=constant), target) == 1


def test_phases_along_columns_of_products_of_bytes_are_parts_where_they_have_other_columns_of_the_kernel() -> None:
    for target in (DOT4, V4):
        assert parts(transposed(kernel=(4, 3), stride=(2, 2), dtype="int8"), target) == 2
        assert parts(transposed(kernel=(4, 4), stride=(2, 2), dtype="int8"), target) == 1
    assert parts(transposed(kernel=(4, 3), stride=(2, 2), dtype="int8"), TARGETS["4 bytes"]) == 1


def test_phases_that_no_part_of_the_kernel_reaches_hold_the_bias() -> None:
    k = transposed((1, 4, 9, 3), 6, (3, 3), (8, 8), (0, 0, 0, 0))
    assert parts(k, V4) == 2  # all outputs, then rows and columns of both
    check([k], interpret=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("shape", "filters", "kernel", "stride", "out_pad"), [
    ((1, 3, 9, 13), 6, (1, 3), (1, 2), (0, 0, 0, 9)), ((1, 3, 9, 13), 6, (5, 5), (1, 2), (-2, -2, 0, 1)),
    ((1, 3, 40, 5), 6, (5, 5), (1, 1), (0, -3, 0, -3)), ((1, 3, 17, 4), 3, (5, 7), (2, 3), (0, 0, -2, 1)),
])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_borders_of_phases(shape: tuple[int, ...], filters: int, kernel: tuple[int, int], stride: tuple[int, int],
                           out_pad: tuple[int, ...], dtype: str) -> None:
    for constant in (True, False):
        check([transposed(shape, filters, kernel, stride, out_pad, dtype, constant)], interpret=False)


def test_phases_of_products_of_bytes_are_parts_where_how_far_they_go_changes_unevenly() -> None:
    uneven = transposed(kernel=(4, 1), stride=(3, 1), dtype="int8")
    for target in (DOT4, V4):
        assert parts(uneven, target) == 3
        assert parts(transposed(kernel=(6, 1), stride=(3, 1), dtype="int8"), target) == 1
    assert parts(uneven, TARGETS["4 bytes"]) == 1


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("target", [V4, DOT4], ids=["plain", "dot4"])
def test_a_stride_along_rows_adds_little_code(target: Target, dtype: str, constant: bool) -> None:
    def sizes(stride: int) -> int:
        return statements(transposed((1, 16, 17, 32), 48, (6, 3), (stride, 1), dtype=dtype, constant=constant), target)

    assert max(sizes(2), sizes(3), sizes(6)) < 1.2 * sizes(1) + 30


def test_the_slowest_transposed_convolution_to_compile_stays_small() -> None:
    k = transposed((2, 17, 17, 32), 48, (5, 3), (2, 2), constant=False)
    assert statements(k, V4) < 1300
    assert sum(isinstance(s, (For, If)) for s in walk(schedule(k, V4).body)) < 30


# ---- conditions ------------------------------------------------------------------------------------------------------
Q, R, J = Axis("q", 5), Axis("r", 2), Axis("j", 3)


def load(size: int, index: Affine) -> Load:
    return Load(Buffer("x", "float32", (size,), "argument"), (index,))


def test_a_load_is_kept_in_range_by_conditions_on_what_it_reads() -> None:
    row = Affine.of(R) + Affine.of(J) * 2  # 0 to 5
    x = load(5, row)
    assert not kept_in_range(x, ())
    assert kept_in_range(x, (Range(row, 0, 5),))
    assert not kept_in_range(x, (Range(row, 0, 6),))
    assert not kept_in_range(x, (Range(Affine.of(Q) - J, 0, 5),))
    assert kept_in_range(load(50, row * 10 + Q), (Range(row, 0, 5),))
    assert kept_in_range(load(5, row * -1 + 4), (Range(row, 0, 5),))
    assert not kept_in_range(load(50, row * 10 + Q - 1), (Range(row, 0, 5),))


def test_values_of_an_axis_share_a_run_where_the_same_places_fail() -> None:
    taps, row = Axis("taps", 5), Axis("row", 4)
    where = [Range(Affine.of(row) + taps - 2, 0, 6)]
    places = [{row: Affine.of(i)} for i in range(4)]
    assert alike([taps], where, places) == {taps: [range(i, i + 1) for i in range(2)] + [range(2, 5)]}
    assert alike([taps], where, places[2:]) == {taps: [range(5)]}
    inner = Axis("inner", 2)
    unsettled = [Range(Affine.of(row) + taps + inner - 2, 0, 6)]
    assert alike([taps], unsettled, places) == {taps: [range(1), range(1, 2), range(2, 4), range(4, 5)]}
    wide = [Range(Affine.of(row) * 8 + Affine.of(taps) * 7 - 9, 0, 4)]  # below at first, above at last, never inside
    assert alike([taps], wide, places[:2]) == {taps: [range(i, i + 1) for i in range(5)]}


def test_a_window_that_steps_over_its_input_reads_none_of_it() -> None:
    g = Graph()
    weight = np.ones((12, 3, 3, 4), np.float32)
    g_result = g.op("conv2d", g.input(5, 7, 4, 4), weight, np.zeros(12, np.float32), zero("float32"), zero("float32"),
                    pad=(0, 0, 9, 10), stride=(1, 8), dilation=(1, 7), acc_type=F32)
    module = g.module(g_result)
    check(list(fuse(module, module.function("main")).kernels))


def test_a_window_at_the_border_is_unrolled_only_where_it_leaves_the_input() -> None:
    """All but the places outside of the input share a loop, so a larger window is not more code."""
    def size(extent: int) -> int:
        g = Graph()
        pad = extent // 2
        weight = np.ones((40, 1, extent, 8), np.float32)
        made = g.op("conv2d", g.input(1, 3, 12, 8), weight, np.zeros(40, np.float32), zero("float32"), zero("float32"),
                    pad=(0, 0, pad, pad), stride=(1, 1), dilation=(1, 1), acc_type=F32)
        module = g.module(made)
        k, = fuse(module, module.function("main")).kernels
        few = dataclasses.replace(V4, fma_latency=1)
        check([k], targets={"few": few}, interpret=False)
        return statements(k, few)

    assert size(7) < 2 * size(3)


def test_a_phase_that_leaves_out_columns_does_not_write_them() -> None:
    """Of one filter, whose sums go along the channels: the phases are the columns, and the last of them has fewer."""
    kernels = [transposed((1, 1, width, 4), 1, (1, 3), (2, stride), (0, 0, before, after))
               for stride, before, after in ((5, 4, -2), (5, 3, -1), (4, 2, -2), (4, 1, 1)) for width in (1, 2)]
    check(kernels, interpret=False, targets={name: TARGETS[name] for name in ("512 bits", "scalar")})
