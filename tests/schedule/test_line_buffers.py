"""Line buffers of windows over bytes: their loops compute what the window means, on every machine that has them, whole and by
rows, with hostile values; and which windows have them."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Expr, Load, cast, guard, reduce
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.schedule.contraction import line_buffers
from tosaic.lowering.schedule.contraction.contraction_strategies import ContractionStrategy
from tosaic.lowering.schedule.schedule import scheduled, strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.target.presets import target

from .kernels import TARGETS, interpreted, meaning, row_count, same, spans

NAMES = ("cortex-a76", "neoverse-v1", "cortex-a53", "rv64gcv", "rv64gc", "cortex-m0", "cortex-m3", "cortex-m4")
Pair = tuple[int, int]


@dataclass(frozen=True)
class WindowCase:
    """A convolution: sizes of the input without its channels, of the window, its strides, dilations, and padding before and
    after."""
    size: Pair
    channels: int
    outputs: int
    kernel: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    pad: tuple[Pair, Pair] = ((0, 0), (0, 0))
    zero_point: int = 3
    dtype: str = "int8"

    @property
    def places(self) -> list[int]:
        return [(n + sum(p) - (k - 1) * d - 1) // s + 1
                for n, p, k, d, s in zip(self.size, self.pad, self.kernel, self.dilation, self.stride)]


def kernel_of(c: WindowCase, weights: Array) -> tuple[Kernel, Buffer]:
    """The sums, and x."""
    out = [Axis(name, n) for name, n in zip(("oh", "ow", "n"), (*c.places, c.outputs))]
    k = [Axis(name, n) for name, n in zip(("kh", "kw", "c"), (*c.kernel, c.channels))]
    x = Buffer("x", c.dtype, (*c.size, c.channels), "argument")
    w = Buffer("w", "int8", (c.outputs, *c.kernel, c.channels), "constant", weights)
    at = [Affine.of(o) * s + Affine.of(a) * d - p[0] for o, a, s, d, p in zip(out, k, c.stride, c.dilation, c.pad)]
    value: Expr = cast(Load(x, (*at, Affine.of(k[2]))), "int32") - c.zero_point
    padded = guard([Range(i, 0, n) for i, n in zip(at, c.size)], value, 0)
    body = padded * cast(Load(w, tuple(map(Affine.of, (out[2], *k)))), "int32")
    return Kernel(Buffer("y", "int32", tuple(a.extent for a in out), "result"), tuple(out), reduce("add", tuple(k), body)), x


def extremes(g: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    """Bytes, half of them the least or the greatest."""
    info = np.iinfo(dtype)
    values = g.integers(info.min, info.max + 1, shape)
    return np.where(g.random(shape) < 0.5, g.choice([info.min, info.max], shape), values).astype(dtype)


def has_lines(k: Kernel, request: ScheduleRequest) -> bool:
    return any(isinstance(s, ContractionStrategy) and s.pattern.lines is not None for s in strategies_of(k, request))


def check(c: WindowCase, request: ScheduleRequest, seed: int = 0) -> bool:
    """Its loops compute what it means; whether it has line buffers."""
    g = np.random.default_rng(seed)
    k, x = kernel_of(c, extremes(g, "int8", (c.outputs, *c.kernel, c.channels)))
    data = {x: extremes(g, c.dtype, x.shape)}
    right = meaning(k, data)
    for by_rows in (False, True):
        asked = ScheduleRequest(request.target, request.precision, by_rows)
        function = scheduled(k, asked).function
        verify(function)
        same(interpreted(function, k, data, spans(row_count(k), g) if by_rows else ()), right, f"by rows: {by_rows}")
    return has_lines(k, request)


def some(seed: int) -> WindowCase:
    """Of any sizes, over few channels or many."""
    g = np.random.default_rng(seed)

    def two(low: int, high: int) -> Pair:
        return int(g.integers(low, high)), int(g.integers(low, high))

    kernel, pad = two(1, 6), (two(0, 3), two(0, 3))
    size = tuple(max(1, k + int(g.integers(0, 9)) - sum(p)) for k, p in zip(kernel, pad))
    channels, outputs = int(g.choice([1, 2, 3, 4, 5, 8])), int(g.choice([1, 3, 8, 16, 21]))
    zero_point, dtype = int(g.choice([-128, 0, 3, 127])), str(g.choice(["int8", "int8", "uint8"]))
    return WindowCase((size[0], size[1]), channels, outputs, kernel, two(1, 3), (1, 1), pad, zero_point, dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(12))
def test_windows_of_any_sizes(seed: int, name: str) -> None:
    check(some(seed), ScheduleRequest(target(name)), seed)


FIRST = WindowCase((9, 11), 3, 8, (3, 3), (2, 2), pad=((0, 1), (0, 1)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("c", [
    FIRST, WindowCase((9, 9), 1, 8, (3, 3), pad=((1, 1), (1, 1)), zero_point=-128), WindowCase((9, 12), 2, 5, (2, 5)),
    WindowCase((12, 9), 4, 8, (5, 3), (1, 2), (2, 1), ((2, 2), (1, 0)), 127),
    WindowCase((8, 10), 3, 4, (3, 3), (3, 3), pad=((4, 4), (2, 3)))], ids=str)
def test_windows_over_few_channels_have_them(c: WindowCase, name: str) -> None:
    """Strides up to the window's width, padding that a whole line or a whole window may be in, lines that are apart."""
    assert check(c, ScheduleRequest(target(name)))


@pytest.mark.parametrize("c", [
    WindowCase((9, 9), 3, 8, (1, 1)), WindowCase((9, 30), 3, 8, (2, 2), (1, 3)),
    WindowCase((9, 30), 3, 8, (3, 3), dilation=(1, 2)), WindowCase((9, 5), 3, 8, (3, 3))],
    ids=["1 x 1", "gaps between windows", "gaps in windows", "few outputs of a row"])
def test_other_windows_have_none(c: WindowCase) -> None:
    assert not check(c, ScheduleRequest(target("cortex-a76")))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "channels", "has"), [
    ("cortex-a76", 32, True), ("cortex-a76", 512, True), ("cortex-a76", 1100, False), ("cortex-m3", 32, True),
    ("cortex-m3", 80, False), ("cortex-m4", 32, False), ("cortex-m55", 32, False)])
def test_long_runs_are_copied_where_there_is_room_for_them(name: str, channels: int, has: bool) -> None:
    """Half of a cache, or two kilobytes where bytes are multiplied one by one."""
    wide = WindowCase((4, 8), channels, 2, (3, 3), pad=((1, 1), (1, 1)))
    assert check(wide, ScheduleRequest(target(name))) == has


@pytest.mark.parametrize("name", TARGETS)
def test_machines_whose_products_take_unsigned_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No x86 machine has line buffers; that it would be right if one had them says that nothing depends on the machine."""
    monkeypatch.setattr(line_buffers, "group_of", lambda _: 1)
    assert check(FIRST, ScheduleRequest(TARGETS[name]))
