"""Graphs of one operator have little code: tiles that overlap at the end and are all alike, loops that carry only what changes,
and more cycles for less code where floats are narrow; and the results stay those of the interpreter."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from hypothesis import given
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Cast, Load
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Literal, Type
from tosaic.lowering.native.llvm.emit import emit_functions, unchanged
from tosaic.lowering.schedule.code_size_model import (
    LINE_CYCLES,
    NARROW_SLOWDOWN_FRACTION,
    SLOWDOWN_FRACTION,
    TileCode,
    instructions,
    price_of,
)
from tosaic.lowering.schedule.contraction.border_tiles import heights, mean, single_at_ends
from tosaic.lowering.schedule.contraction.register_tile import Tile, panels
from tosaic.lowering.schedule.nest.padding_conditions import PaddingConditions
from tosaic.lowering.schedule.nest.tile_axis import Cut, Tiles, over, pieces, repeating
from tosaic.lowering.target.presets import target

WIDE = target("x86-64-v4")


def columns(count: int, tile: Tile) -> Cut:
    return [(t, pieces(t.size, 16, True)) for t in panels(count, 16, tile)]


def starts(t: Tiles) -> list[int]:
    return [min(t.start + i * t.size, t.end - t.size) for i in range(t.count)]


@given(st.integers(1, 300), st.integers(1, 64))
def test_overlapping_tiles_cover_an_axis(extent: int, size: int) -> None:
    size = min(size, extent)
    (tiles,) = repeating(extent, size)
    assert tiles.end == extent and 0 <= tiles.again < size
    assert {s + i for s in starts(tiles) for i in range(size)} == set(range(extent))


def test_the_loop_over_overlapping_tiles_starts_where_they_do() -> None:
    out = Buffer("out", "int32", (11,), "result")
    b = Builder("tiles")
    over(b, repeating(11, 4), lambda start, t: b.store(out, start, Literal(7, Type("int32", t.size))))
    text = "\n".join(emit_functions([b.finish()], WIDE).definitions)
    assert text.count("store <4 x i32>") == 1 and "llvm.smin.i64" in text


def test_tiles_are_alike_where_rows_may_be_computed_again() -> None:
    tile, code = Tile(14, 2), TileCode(passes=1000, row=0, result=2)
    separate = heights(53, (0, 53), tile, False, columns(32, tile), 1000, WIDE, code=code)
    alike = heights(53, (0, 53), tile, False, columns(32, tile), 1000, WIDE, code=code, again=True)
    assert [t.size for t in separate] == [14, 13] and alike == [Tiles(0, 14, 4, 3)]


@given(st.integers(3, 60), st.integers(0, 12), st.integers(0, 12), st.integers(1, 9))
def test_single_rows_at_the_ends_leave_no_row_out(extent: int, low: int, after: int, size: int) -> None:
    first = min(low, extent - 1)
    for tiles in single_at_ends(extent, (first, max(extent - after, first + 1)), Tile(size, 1), again=True):
        assert {s + i for t in tiles for s in starts(t) for i in range(t.size)} == set(range(extent))


def test_rows_whose_windows_are_outside_cost_nothing() -> None:
    row, k = Axis("row", 10), Axis("k", 4)
    conditions = PaddingConditions((Range(Affine.of(row) + k - 6, 0, 6),), (), (), frozenset({k}))
    assert conditions.fractions(row) == [0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1, 0.75]
    assert mean(conditions.fractions(row), Tiles(2, 2, 2)) == 0.375


def test_a_conversion_counts_as_what_it_is() -> None:
    x = Load(Buffer("x", "float32", (4,), "argument"), (Affine(),))
    assert [instructions(Cast(x, t)) for t in ("float16", "float64", "float32")] == [1, 1, 1]
    assert instructions(Cast(x, "float8_e5m2")) > instructions(Cast(x, "bfloat16")) > 1


def depthwise(element: str, rows: int, width: int, channels: int, kernel: int, pads: tuple[int, ...]) -> str:
    top, bottom, left, right = pads
    height, columns = rows + top + bottom - kernel + 1, width + left + right - kernel + 1
    x, weights = f"tensor<2x{rows}x{width}x{channels}x{element}>", f"tensor<{kernel}x{kernel}x{channels}x2x{element}>"
    y, bias = f"tensor<2x{height}x{columns}x{2 * channels}x{element}>", f"tensor<{2 * channels}x{element}>"
    zero = f"tensor<1x{element}>"
    return f"""func.func @main(%x: {x}, %w: {weights}, %b: {bias}) -> {y} {{
  %z = "tosa.const"() <{{values = dense<0.0> : {zero}}}> : () -> {zero}
  %r = "tosa.depthwise_conv2d"(%x, %w, %b, %z, %z) <{{pad = array<i64: {top}, {bottom}, {left}, {right}>,
    stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32, local_bound = false}}>
    : ({x}, {weights}, {bias}, {zero}, {zero}) -> {y}
  return %r : {y}
}}"""


@pytest.mark.parametrize("element", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("width, channels, kernel, pads", [
    (31, 4, 3, (2, 0, 0, 2)), (19, 9, 2, (1, 1, 1, 1)), (23, 1, 5, (4, 4, 6, 7)), (7, 6, 5, (0, 0, 6, 6)),
    (29, 8, 3, (0, 0, 0, 0))])
def test_windows_have_little_code_and_are_right(element: str, width: int, channels: int, kernel: int, pads: tuple[int, ...]
                                                ) -> None:
    traced = tosaic.load(depthwise(element, 9, width, channels, kernel, pads)).main.trace()
    lowered = traced.lower(tosaic.CompileOptions(target=WIDE))
    assert lowered.show("llvm").count("\n") < 480
    rng, types = np.random.default_rng(width), [b.dtype for b in lowered.kernels.inputs]
    shapes = (2, 9, width, channels), (kernel, kernel, channels, 2), (2 * channels,)
    check = traced.check([[rng.integers(-4, 5, s).astype(np.float32).astype(t) for s, t in zip(shapes, types)]])
    assert check.agrees, check


def test_narrow_floats_pay_more_for_a_line() -> None:
    assert price_of(NARROW_SLOWDOWN_FRACTION) > price_of(SLOWDOWN_FRACTION) == LINE_CYCLES


def test_a_loop_does_not_carry_what_inner_loops_leave_as_it_is() -> None:
    b, x = Builder("kept"), Buffer("x", "float32", (4,), "result")
    i, j = Axis("i", 3), Axis("j", 5)
    zero = Literal(0.0, Type("float32"))
    one = Literal(1.0, Type("float32"))

    def inner(kept: object, total: object) -> tuple[object, object]:
        return kept, b.op("add", total, one)  # type: ignore[arg-type]

    results = b.loop(i, lambda kept, total: b.loop(j, inner, (kept, total)), (zero, zero))  # type: ignore[arg-type, return-value]
    for place, value in enumerate(results):
        b.store(x, Affine.of(place), value)
    function = b.finish()
    (outer,) = [s for s in function.body if hasattr(s, "yields")]
    assert unchanged(outer) == frozenset(outer.params[:1])
    text = "\n".join(emit_functions([function], WIDE).definitions)
    assert text.count("phi float") == 2  # the total, in each of the loops


def convolution(element: str, sums: str, shape: tuple[int, ...], filters: int, kernel: int, pad: int) -> str:
    out = "f16" if element.startswith("f8") else element
    n, h, w, c = shape
    height, width = h + 2 * pad - kernel + 1, w + 2 * pad - kernel + 1
    x, weights = f"tensor<{n}x{h}x{w}x{c}x{element}>", f"tensor<{filters}x{kernel}x{kernel}x{c}x{element}>"
    y, bias, zero = f"tensor<{n}x{height}x{width}x{filters}x{out}>", f"tensor<{filters}x{out}>", f"tensor<1x{element}>"
    return f"""func.func @main(%x: {x}, %w: {weights}, %b: {bias}) -> {y} {{
  %z = "tosa.const"() <{{values = dense<0.0> : {zero}}}> : () -> {zero}
  %r = "tosa.conv2d"(%x, %w, %b, %z, %z) <{{pad = array<i64: {pad}, {pad}, {pad}, {pad}>, stride = array<i64: 1, 1>,
    dilation = array<i64: 1, 1>, acc_type = {sums}, local_bound = false}}> : ({x}, {weights}, {bias}, {zero}, {zero}) -> {y}
  return %r : {y}
}}"""


@pytest.mark.parametrize("element, sums", [("bf16", "f32"), ("f16", "f32"), ("f32", "f32"), ("f8E4M3FN", "f16")])
@pytest.mark.parametrize("width, filters, pad", [(31, 20, 0), (29, 3, 1), (38, 33, 2)])
def test_convolutions_have_little_code_and_are_right(element: str, sums: str, width: int, filters: int, pad: int) -> None:
    text = convolution(element, sums, (2, 17, width, 7), filters, 3, pad)
    traced = tosaic.load(text).main.trace()
    lowered = traced.lower(tosaic.CompileOptions(target=WIDE))
    assert lowered.show("llvm").count("\n") < 500
    rng, types = np.random.default_rng(width), [b.dtype for b in lowered.kernels.inputs]
    shapes = (2, 17, width, 7), (filters, 3, 3, 7), (filters,)
    arrays = [rng.integers(-4, 5, s).astype(np.float32).astype(t) for s, t in zip(shapes, types)]
    check = traced.check([arrays])
    assert check.agrees, check
