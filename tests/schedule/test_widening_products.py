"""Depthwise convolutions of bytes on machines that widen products of 16 bits: their loops compute what the window means, whole
and by rows, with hostile values; and factors have 16 bits."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Expr, Load, cast, guard, reduce
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import Function, Let, walk
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.schedule.schedule import scheduled
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.target.presets import target

from .kernels import interpreted, meaning, row_count, same, spans
from .test_line_buffers import WindowCase, extremes, some

NAMES = ("cortex-a53", "rv64gcv", "rv64gcv_zvl256b")


def depthwise(c: WindowCase, weights: Array) -> tuple[Kernel, Buffer]:
    """Sums of each channel, and x."""
    out = [Axis(name, n) for name, n in zip(("oh", "ow", "c"), (*c.places, c.channels))]
    k = [Axis(name, n) for name, n in zip(("kh", "kw"), c.kernel)]
    x, w = Buffer("x", c.dtype, (*c.size, c.channels), "argument"), Buffer("w", "int8", weights.shape, "constant", weights)
    at = [Affine.of(o) * s + Affine.of(a) * d - p[0] for o, a, s, d, p in zip(out, k, c.stride, c.dilation, c.pad)]
    value: Expr = cast(Load(x, (*at, Affine.of(out[2]))), "int32") - c.zero_point
    padded = guard([Range(i, 0, n) for i, n in zip(at, c.size)], value, 0)
    body = padded * cast(Load(w, tuple(map(Affine.of, (*k, out[2])))), "int32")
    return Kernel(Buffer("y", "int32", tuple(a.extent for a in out), "result"), tuple(out), reduce("add", tuple(k), body)), x


def products(function: Function) -> list[tuple[str, int]]:
    """Where the factors of products of vectors of int32 come from: their types before they were widened, and their lanes."""
    made = {stmt.result: stmt for stmt in walk(function.body) if isinstance(stmt, Let)}
    return [(made[x].args[0].type.dtype, stmt.result.type.lanes) for stmt in made.values() if stmt.op == "mul"
            and stmt.result.type.dtype == "int32" for x in stmt.args if x in made and made[x].op == "cast"]


def check(c: WindowCase, name: str, seed: int) -> Function:
    """Its loops compute what it means."""
    g = np.random.default_rng(seed)
    k, x = depthwise(c, extremes(g, "int8", (*c.kernel, c.channels)))
    data = {x: extremes(g, c.dtype, x.shape)}
    right, whole = meaning(k, data), scheduled(k, ScheduleRequest(target(name))).function
    for function in (whole, scheduled(k, ScheduleRequest(target(name), by_rows=True)).function):
        verify(function)
        same(interpreted(function, k, data, spans(row_count(k), g) if function is not whole else ()), right, name)
    return whole


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(16))
def test_windows_of_any_sizes(seed: int, name: str) -> None:
    check(some(seed), name, seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("zero_point", "dtype"), [(-128, "int8"), (127, "int8"), (0, "int8"), (0, "uint8"), (255, "uint8")])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_factors_have_16_bits(stride: tuple[int, int], zero_point: int, dtype: str, name: str) -> None:
    c = WindowCase((8, 9), 24, 24, (3, 3), stride, pad=((1, 1), (1, 1)), zero_point=zero_point, dtype=dtype)
    found = products(check(c, name, 1))
    assert found and {of for of, _ in found} == {"int16"} and all(lanes >= 8 for _, lanes in found), found


def test_zero_points_that_are_no_bytes_are_taken_away_in_32_bits() -> None:
    c = WindowCase((8, 9), 16, 16, (3, 3), zero_point=1000)
    assert not any(of == "int16" for of, _ in products(check(c, "rv64gcv", 2)))
