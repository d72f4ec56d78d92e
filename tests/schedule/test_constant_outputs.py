"""Outputs whose sums have no terms are written first, all of the result at once, where that is less code and hardly slower."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.types import F32
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.cost import CostModel
from tosaic.lowering.loops.ir import For
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.elementwise.elementwise import MAX_SINGLE_TERMS
from tosaic.lowering.schedule.parallelize import MAX_DIVIDED_DEPTH, divide

from ..fuse.graphs import Graph, conv, zero
from .costs import every_machine_costs
from .kernels import TARGETS, V4, check
from .test_transposed_convolution import transposed

BORDER = (9, 8, 9, 9)


def padded(pad: tuple[int, ...], shape: tuple[int, ...] = (2, 6, 7, 3), filters: int = 5, kernel: int = 1,
           dtype: str = "float32", same_bias: bool = False) -> Kernel:
    """A convolution with weights as arguments."""
    g, many = Graph(), np.zeros(filters) if same_bias else np.arange(filters)
    x, weight = g.input(*shape, dtype=dtype), g.input(filters, kernel, kernel, shape[-1], dtype=dtype)
    bias = many.astype(np.float32 if dtype == "float32" else np.float16)[:1 if same_bias else filters]
    made = g.op("conv2d", x, weight, bias, zero(dtype), zero(dtype), pad=pad, stride=(1, 1), dilation=(1, 1), acc_type=F32)
    module = g.module(made)
    found, = fuse(module, module.function("main")).kernels
    return found


def has_background(k: Kernel) -> bool:
    return ".background [" in describe(k, V4).splitlines()[0]


@pytest.mark.parametrize("same_bias", [True, False])
@pytest.mark.parametrize(("filters", "kernel"), [(5, 1), (1, 1), (20, 1)])
def test_a_border_wider_than_the_window_holds_the_bias(filters: int, kernel: int, same_bias: bool) -> None:
    k = padded(BORDER, filters=filters, kernel=kernel, same_bias=same_bias)
    assert has_background(k)
    check([k], interpret=False)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("kernel", "stride", "out_pad"), [
    ((3, 3), (8, 8), (0, 0, 0, 0)), ((1, 3), (8, 1), (9, 9, 9, 0)), ((1, 1), (1, 8), (9, 9, 9, 9)),
    ((2, 1), (5, 3), (1, -1, 0, 2)),
])
def test_places_between_windows_hold_the_bias(kernel: tuple[int, int], stride: tuple[int, int], out_pad: tuple[int, ...],
                                              constant: bool, dtype: str) -> None:
    check([transposed((2, 4, 9, 3), 6, kernel, stride, out_pad, dtype, constant)], interpret=False)


def test_there_is_one_part_beside_that_with_sums() -> None:
    lines = describe(transposed((1, 4, 9, 3), 6, (1, 1), (8, 8), (9, 9, 9, 9)), V4).splitlines()
    assert len(lines) == 2
    assert ".background [" in lines[0]


def test_a_thin_border_of_much_work_is_written_separately() -> None:
    """The whole would take longer than the border does."""
    k = padded((1, 1, 1, 1), (1, 60, 60, 4), 16, 1)
    assert len(describe(k, V4).splitlines()) > 1
    assert not has_background(k)


def test_rows_that_come_some_at_a_time_are_written_once() -> None:
    """Which rows there are is not known: only whole results have a background."""
    k = padded(BORDER)
    function = schedule(k, V4, by_rows=True)
    assert CostModel(function, V4.costs).stored(function.body[:1], k.out) < k.out.size
    check([k], targets={"512 bits": V4})


def test_all_threads_have_written_the_background_before_sums_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    k = transposed((2, 20, 20, 8), 16, (3, 3), (8, 8), (0, 0, 0, 0))
    assert has_background(k)
    whole = schedule(k, V4, keeps=MAX_DIVIDED_DEPTH)
    first, last = whole.body[0], whole.body[-1]
    assert isinstance(first, For) and isinstance(last, For)
    every_machine_costs(monkeypatch, barrier_cycles=0)
    found = divide(whole, 4, V4.costs)
    assert found is not None
    assert len(found.phases) == 2
    assert CostModel(whole, V4.costs).stored([first], k.out) >= k.out.size


def test_independent_pieces_do_not_wait() -> None:
    """What stores only a part of the result is followed by the next in the same phase."""
    k = padded((1, 1, 1, 1), (1, 60, 60, 4), 16, 1)
    found = divide(schedule(k, V4, keeps=MAX_DIVIDED_DEPTH), 2, V4.costs)
    assert found is None or len(found.phases) == 1


def test_little_work_of_small_elements_under_conditions_goes_one_sum_at_a_time() -> None:
    """Vectors of them would be loaded element by element, each under a mask."""
    little, much = padded((0, 0, 3, 3), (1, 5, 6, 4), 1, 3, "float16"), padded((1, 1, 1, 1), (1, 90, 90, 4), 1, 3, "float16")
    assert MAX_SINGLE_TERMS < 90 * 90 * 36
    assert describe(little, V4).endswith("elementwise: 1 vectors of 1")
    assert describe(much, V4).endswith("vectors of 16")
    check([little], targets={name: TARGETS[name] for name in ("512 bits", "scalar")}, interpret=False)


def test_kernels_that_read_along_the_background_keep_their_parts() -> None:
    """A value that differs along other axes than the last is no bias."""
    g = Graph()
    x, beside = g.input(1, 5, 6, 4), g.input(1, 22, 24, 7)
    made = g.op("add", conv(g, x, np.ones((7, 1, 1, 4), np.float32), np.zeros(7, np.float32), pad=BORDER), beside)
    module = g.module(made)
    k, = fuse(module, module.function("main")).kernels
    assert not has_background(k)
    check([k], interpret=False)
