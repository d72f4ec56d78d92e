"""Depthwise convolutions of bytes, several taps at a time: windows, strides, dilations, padding, zero points, odd channels."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tosaic.lowering.elements.expression import Buffer, Load
from tosaic.lowering.elements.traverse import loads, rewrite
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I32
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.schedule import describe
from tosaic.lowering.schedule.window import int8_blocks

from ..fuse.graphs import Graph, conv, rescale
from .kernels import TARGETS, check

SEVERAL_AT_A_TIME = {name: t for name, t in TARGETS.items() if t.products_in_a_lane > 1}
IN_BLOCKS = {name: TARGETS[name] for name in ("512 bits, dot4", "256 bits, no masks", "128 bits")}


@dataclass(frozen=True)
class Case:
    """Rows, columns and channels of the input, and the window."""
    shape: tuple[int, int, int]
    kernel: tuple[int, int] = (3, 3)
    pad: tuple[int, int, int, int] = (1, 1, 1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    zero_point: int = 0
    batch: int = 1

    def kernels(self, rescaled: bool = False) -> tuple[Kernel, ...]:
        g, rng = Graph(), np.random.default_rng(5)
        x = g.input(self.batch, *self.shape, dtype="int8")
        module = g.module(self.of(g, x, rng, rescaled))
        return fuse(module, module.function("main")).kernels

    def of(self, g: Graph, x: Value, rng: np.random.Generator, rescaled: bool) -> Value:
        channels = self.shape[2]
        weight = rng.integers(-128, 128, (*self.kernel, channels, 1)).astype(np.int8)
        bias = rng.integers(-9999, 9999, channels).astype(np.int32)
        y = conv(g, x, weight, bias, self.zero_point, "depthwise_conv2d", self.pad, self.stride, self.dilation)
        return rescale(g, y, channels, rng) if rescaled else y


CASES = {
    "plain": Case((6, 7, 16), pad=(0, 0, 0, 0)),
    "same": Case((5, 9, 20), zero_point=3),
    "least zero point": Case((5, 5, 16), zero_point=-128),
    "greatest zero point": Case((5, 5, 16), zero_point=127),
    "one row": Case((1, 9, 17), zero_point=5),
    "one column": Case((9, 1, 17), zero_point=5),
    "stride": Case((9, 21, 33), stride=(2, 2), zero_point=-7),
    "padding at the end": Case((8, 8, 24), pad=(0, 1, 0, 1), stride=(2, 2), zero_point=9),
    "five by five": Case((7, 11, 19), (5, 5), (2, 2, 2, 2), zero_point=1),
    "seven by one": Case((12, 3, 40), (7, 1), (3, 3, 0, 0), zero_point=-3),
    "one by seven": Case((3, 12, 40), (1, 7), (0, 0, 3, 3), zero_point=-3),
    "time only": Case((30, 1, 40), (5, 1), (0, 0, 0, 0), zero_point=4),
    "dilated": Case((12, 14, 18), dilation=(2, 3), pad=(2, 2, 3, 3), zero_point=2),
    "more padding than image": Case((2, 3, 16), (5, 5), (4, 4, 4, 4), zero_point=6),
    "three channels": Case((6, 6, 3), zero_point=11),
    "batch": Case((4, 5, 16), zero_point=-1, batch=3),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_windows_of_bytes_are_exact(name: str) -> None:
    check(CASES[name].kernels(), targets=SEVERAL_AT_A_TIME)


@pytest.mark.parametrize("name", ["same", "stride", "five by five"])
def test_rescaled_windows_of_bytes_are_exact(name: str) -> None:
    check(CASES[name].kernels(rescaled=True), targets=SEVERAL_AT_A_TIME)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", [
    Case((5, 8, 115), zero_point=-3), Case((4, 4, 72), (2, 2), (0, 0, 0, 0), zero_point=7),
    Case((8, 16, 96), pad=(0, 1, 0, 1), stride=(2, 2), zero_point=-128), Case((6, 12, 32), (1, 3), (0, 0, 2, 0), zero_point=1),
    Case((9, 9, 64), (5, 5), (2, 2, 2, 2), zero_point=-9), Case((1, 4, 64), (1, 4), (0, 0, 3, 0))], ids=lambda c: str(c.shape))
def test_blocks_of_bytes_are_exact(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a vector of columns, of half as many by two rows, and with what is left beside them."""
    monkeypatch.setattr(int8_blocks, "ROW_LINES", 0)
    monkeypatch.setattr(int8_blocks, "MAX_SUM_BYTES_PER_RESULT_BYTE", 1000)
    kernels = case.kernels(rescaled=True)
    for t in IN_BLOCKS.values():
        assert " blocks of " in "".join(describe(k, t) for k in kernels)
    check(kernels, targets=SEVERAL_AT_A_TIME)


def test_blocks_need_no_more_memory_for_sums_than_the_result_has() -> None:
    small, large = (Case(shape, (3, 1), (0, 0, 0, 0)).kernels(rescaled=True) for shape in ((10, 1, 64), (40, 12, 64)))
    found = ["".join(describe(k, TARGETS["512 bits, dot4"]) for k in kernels) for kernels in (small, large)]
    assert [" blocks of " in text for text in found] == [False, True]


def test_outputs_that_are_no_packed_sums_have_no_blocks() -> None:
    (k,) = replace(CASES["batch"], shape=(4, 5, 128)).kernels()
    assert " blocks of " not in describe(k, TARGETS["512 bits, dot4"])


def test_unsigned_bytes_need_no_flip() -> None:
    """A kernel as it comes from a model whose bytes are unsigned."""
    (k,) = CASES["same"].kernels()
    (x,) = {load.buffer for load in loads(k.value) if load.buffer.data is None}
    unsigned = Buffer("u", "uint8", x.shape, "argument")
    value = rewrite(k.value, lambda e: Load(unsigned, e.index) if isinstance(e, Load) and e.buffer is x else None)
    check([replace(k, value=value)], targets=SEVERAL_AT_A_TIME)


@pytest.mark.parametrize("name", ["same", "stride", "dilated", "time only"])
def test_a_target_with_products_of_bytes_uses_them(name: str) -> None:
    t = TARGETS["512 bits, dot4"]
    (k,) = CASES[name].kernels()
    assert "window: dot4" in describe(k, t)
    assert "window: dot" not in describe(k, replace(t, dot_product=None))
    assert "window: dot2" in describe(k, TARGETS["256 bits, no masks"])


def test_a_window_with_too_many_taps_or_weights_of_a_run_takes_plain_products() -> None:
    t = TARGETS["512 bits, dot4"]
    (k,) = Case((12, 12, 16), (9, 9), (4, 4, 4, 4)).kernels()
    assert "dot4" not in describe(k, t)
    g = Graph()
    x, weight = g.input(1, 6, 6, 16, dtype="int8"), g.input(3, 3, 16, 1, dtype="int8")
    point = np.zeros(1, np.int8)
    y = g.op("depthwise_conv2d", x, weight, np.zeros(16, np.int32), point, point, pad=(1, 1, 1, 1), stride=(1, 1),
             dilation=(1, 1), acc_type=I32)
    module = g.module(y)
    assert all("dot4" not in describe(k, t) for k in fuse(module, module.function("main")).kernels)
