"""Graphs of one operator have little code: tiles that overlap at the end and are all alike, loops that carry only what changes,
and more cycles for less code where floats are narrow; and the results stay those of the interpreter."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from hypothesis import given
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Literal, Type
from tosaic.lowering.native.emit import emit_functions, unchanged
from tosaic.lowering.native.features import target
from tosaic.lowering.schedule.borders import heights
from tosaic.lowering.schedule.code_size import LINE_CYCLES, TOLERATED, TOLERATED_NARROW, Code, price_of
from tosaic.lowering.schedule.panels import Cut
from tosaic.lowering.schedule.register_tile import Tile, panels
from tosaic.lowering.schedule.tiles import Tiles, over, pieces, repeating

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
    tile, code = Tile(14, 2), Code(passes=1000, row=0, result=2)
    apart = heights(53, (0, 53), tile, False, columns(32, tile), 1000, WIDE, code=code)
    alike = heights(53, (0, 53), tile, False, columns(32, tile), 1000, WIDE, code=code, again=True)
    assert [t.size for t in apart] == [14, 13] and alike == [Tiles(0, 14, 4, 3)]


def test_narrow_floats_pay_more_for_a_line() -> None:
    assert price_of(TOLERATED_NARROW) > price_of(TOLERATED) == LINE_CYCLES


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
    lowered = traced.lower(WIDE)
    assert lowered.show("llvm").count("\n") < 500
    rng, types = np.random.default_rng(width), [b.dtype for b in lowered.kernels.inputs]
    shapes = (2, 17, width, 7), (filters, 3, 3, 7), (filters,)
    arrays = [rng.integers(-4, 5, s).astype(np.float32).astype(t) for s, t in zip(shapes, types)]
    check = traced.check([arrays])
    assert check.agrees, check
