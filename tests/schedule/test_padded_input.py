"""Small convolutions of floats read a copy of their input with a halo; rows without conditions; phases in tiles of one size."""
from __future__ import annotations

import random

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.types import F32
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import If, Let, walk
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.kernel_signature import signature_of
from tosaic.lowering.schedule.schedule import scheduled
from tosaic.lowering.schedule.schedule_cache import ScheduleCache, ScheduleRequest

from ..fuse.graphs import Graph, zero
from .kernels import TARGETS, V4, check


def conv(shape: tuple[int, ...], weights: np.ndarray | tuple[int, ...], pad: tuple[int, ...], stride: tuple[int, int] = (1, 1),
         dilation: tuple[int, int] = (1, 1), dtype: str = "float32") -> Kernel:
    """Of weights that are known, or have a shape."""
    g = Graph()
    x = g.input(*shape, dtype=dtype)
    w = weights.astype(dtype) if isinstance(weights, np.ndarray) else g.input(*weights, dtype=dtype)
    filters = weights.shape[0] if isinstance(weights, np.ndarray) else weights[0]
    made = g.op("conv2d", x, w, np.arange(filters).astype(dtype), zero(dtype), zero(dtype), pad=pad, stride=stride,
                dilation=dilation, acc_type=F32)
    module = g.module(made)
    found, = fuse(module, module.function("main")).kernels
    return found


def small(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-6, 7, shape) / 2


def transposed(shape: tuple[int, ...], filters: int, kernel: tuple[int, int], stride: tuple[int, int],
               out_pad: tuple[int, ...]) -> Kernel:
    g, dims = Graph(), (filters, *kernel, shape[-1])
    made = g.op("transpose_conv2d", g.input(*shape), small(dims).astype("float32"), np.arange(filters).astype("float32"),
                zero("float32"), zero("float32"), out_pad=out_pad, stride=stride, acc_type=F32)
    module = g.module(made)
    found, = fuse(module, module.function("main")).kernels
    return found


def has_halo(k: Kernel) -> bool:
    return "of a padded copy" in describe(k, V4)


def test_a_window_that_leaves_its_input_reads_a_halo() -> None:
    k = conv((2, 9, 11, 5), small((7, 3, 3, 5)), (1, 1, 1, 1))
    assert "float32[9, 13, 5]" in describe(k, V4)
    check([k])


def test_a_copy_has_the_type_of_the_sums() -> None:
    k = conv((2, 9, 11, 5), small((7, 3, 3, 5)), (1, 1, 1, 1), dtype="float16")
    assert has_halo(k) and any("halo" in b.name and b.dtype == "float32" for b in schedule(k, V4).scratch)
    check([k])


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_weights_that_are_not_finite_have_no_halo(value: float) -> None:
    """A zero of the halo times infinity would not be nothing."""
    weights = small((7, 3, 3, 5))
    weights[0, 0, 0, 0] = value
    assert not has_halo(conv((2, 9, 11, 5), weights, (1, 1, 1, 1)))
    assert not has_halo(conv((2, 9, 11, 5), (7, 3, 3, 5), (1, 1, 1, 1)))  # nobody knows them


def test_of_two_kernels_alike_each_has_a_halo_by_its_own_weights() -> None:
    """What is scheduled for finite weights is not used for others."""
    weights = small((7, 3, 3, 5))
    infinite = weights.copy()
    infinite[0, 0, 0, 0] = np.inf
    kernels = [conv((2, 9, 11, 5), w, (1, 1, 1, 1)) for w in (weights, infinite)]
    assert signature_of(kernels[0], {})[0] == signature_of(kernels[1], {})[0]
    cache = ScheduleCache(scheduled)
    assert [any("halo" in b.name for b in cache.schedule(k, ScheduleRequest(V4)).function.scratch) for k in kernels] == [True,
                                                                                                                         False]


def test_a_large_input_is_not_copied() -> None:
    assert not has_halo(conv((1, 56, 56, 64), small((64, 3, 3, 64)), (1, 1, 1, 1)))


def test_much_work_is_not_worth_a_copy_that_converts_nothing() -> None:
    weights = small((256, 3, 3, 256))
    assert not has_halo(conv((1, 7, 7, 256), weights, (1, 1, 1, 1)))
    assert has_halo(conv((1, 7, 7, 256), weights, (1, 1, 1, 1), dtype="float16"))


def test_an_input_that_is_hardly_there_is_not_copied() -> None:
    assert not has_halo(conv((1, 3, 3, 5), small((7, 3, 3, 5)), (0, 0, 40, 40)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_windows_give_what_the_expression_means(seed: int) -> None:
    r = random.Random(seed)
    height, width, channels, filters = r.randint(1, 7), r.randint(3, 12), r.randint(1, 9), r.randint(2, 20)
    kernel, dilation = (r.randint(1, 3), r.randint(1, 4)), (r.randint(1, 2), r.randint(1, 2))
    pad = tuple(r.randint(0, 3) for _ in range(4))
    pad = (max(pad[0], kernel[0] * 2), *pad[1:2], max(pad[2], kernel[1] * 2), pad[3])
    stride = r.randint(1, 2), r.randint(1, 3)
    extents = [n + pad[2 * d] + pad[2 * d + 1] - (kernel[d] - 1) * dilation[d] - 1 for d, n in enumerate((height, width))]
    pad = tuple(p + (-extents[d // 2] % stride[d // 2] if d % 2 else 0) for d, p in enumerate(pad))
    dtype = r.choice(("float32", "float16"))
    weights = small((filters, *kernel, channels), seed) if r.random() < 0.7 else (filters, *kernel, channels)
    check([conv((r.randint(1, 6), height, width, channels), weights, pad, stride, dilation, dtype)], interpret=False)


def test_what_is_copied_of_an_image_one_pixel_wide_is_strided_in_the_copy() -> None:
    """Its columns beside their halo; or it is a single number."""
    narrow = [conv((2, 6, 1, 1), small((3, 3, 2, 1)), (0, 1, 0, 2), (2, 1)),
              conv((2, 7, 1, 1), small((3, 2, 2, 1)), (1, 1, 1, 1)),
              conv((2, 1, 1, 1), small((3, 4, 1, 1)), (2, 2, 0, 1), dtype="float16"),
              transposed((2, 6, 1, 1), 3, (4, 2), (1, 1), (0, 2, 0, 0)),
              transposed((3, 1, 1, 1), 3, (2, 2), (1, 1), (0, 0, 0, 0))]
    assert all(map(has_halo, narrow))
    check(narrow, interpret=False, targets={name: TARGETS[name] for name in ("512 bits", "128 bits", "scalar")})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stride", [(1, 2), (2, 2), (3, 1), (8, 8)])
@pytest.mark.parametrize("out_pad", [(0, 0, 0, 0), (-1, -1, -1, -1), (2, 1, 0, 3)])
def test_phases_with_a_halo_give_what_the_expression_means(stride: tuple[int, int], out_pad: tuple[int, ...]) -> None:
    check([transposed((2, 5, 9, 6), filters, kernel, stride, out_pad) for filters in (1, 5) for kernel in ((3, 3), (2, 5))],
          interpret=False)


def test_rows_of_a_phase_are_tested_once_for_a_tile() -> None:
    """Phases have 9 rows or 8: tiles of one size start where rows are left, and nothing is tested."""
    k = transposed((2, 5, 9, 6), 5, (3, 3), (2, 2), (0, -2, 0, -2))
    assert has_halo(k)
    assert not any(isinstance(s, If) for s in walk(schedule(k, V4).body))


def test_rows_that_meet_no_condition_are_those_of_a_tile() -> None:
    """Weights that are arguments have no halo; a window of one row meets no condition along the height."""
    k = conv((4, 12, 9, 13), (6, 1, 3, 13), (0, 0, 1, 1))
    assert not has_halo(k)
    multiplied = [s for s in walk(schedule(k, V4).body) if isinstance(s, Let) and s.op == "fma"]
    assert len(multiplied) <= 16  # one tile, and none at a border
    check([k])
