"""Loads, stores, gathers, loops and conditions, native against interpreted; memory around buffers stays as it was."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import ITEM_SIZES
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import INDEX, Function, Literal, Operand, Type
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.target.presets import host

from ..covering import covering
from .harness import Native, differences, interpreted, named

Array = np.ndarray[Any, Any]
TARGETS = ("host", "x86-64", "x86-64-v3", "32 bits")
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float32", "float64", "float16", "bfloat16",
          "float8_e5m2")
pytestmark = pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")


def check(f: Function, data: dict[Buffer, Array], name: str, rows: tuple[int, int] | None = None,
          shift: int = 0) -> None:
    verify(f, rows)
    with Native([f], *named(name)) as native:
        assert not differences(native.run(f, data, rows, shift), interpreted(f, data, rows))


def numbers(dtype: str, count: int) -> Array:
    return np.random.default_rng(5).integers(0, 2 if dtype == "bool" else 100, count).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_only_active_lanes_are_read_and_written(dtype: str, name: str) -> None:
    """Vectors of 2 to 64 bytes, each with 1 to all lanes active, at the ends of their buffers."""
    for lanes in (2, 4, 8, 16, 64 // ITEM_SIZES[dtype]):
        b, data = Builder("active"), {}
        for active in sorted({1, 2, 3, lanes // 2, lanes - 1, lanes} & set(range(1, lanes + 1))):
            x, y = Buffer(f"x{active}", dtype, (active,), "argument"), Buffer(f"y{active}", dtype, (active,), "result")
            b.store(y, Affine(), b.load(x, Affine(), lanes, active), active)
            data[x] = numbers(dtype, active)
        check(b.finish(), data, name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("narrow", ["int8", "int16", "int32", "uint8", "bool", "float16"])
def test_few_lanes_of_a_cast_value_are_read_and_written(narrow: str, name: str) -> None:
    """A conversion may become part of a masked access, which must not become wider by it."""
    for wide, lanes in itertools.product(("int32", "int64", "float32"), (4, 16)):
        b, data = Builder("cast"), {}
        for active in (1, 2, 3):
            x, y = Buffer(f"x{active}", wide, (active,), "argument"), Buffer(f"y{active}", narrow, (active,), "result")
            u, v = Buffer(f"u{active}", narrow, (active,), "argument"), Buffer(f"v{active}", wide, (active,), "result")
            b.store(y, Affine(), b.op("cast", b.load(x, Affine(), lanes, active), type=Type(narrow, lanes)), active)
            b.store(v, Affine(), b.op("cast", b.load(u, Affine(), lanes, active), type=Type(wide, lanes)), active)
            data |= {x: numbers(wide, active), u: numbers(narrow, active)}
        check(b.finish(), data, name)


@pytest.mark.parametrize(("lanes", "dtype", "name"), covering(2, [1, 4, 16], DTYPES, TARGETS))
def test_masked_lanes_are_not_read_and_are_zero(dtype: str, lanes: int, name: str) -> None:
    """A window that slides over both ends of its buffer."""
    b, n = Builder("masked"), 20
    x, y, axis = Buffer("x", dtype, (n,), "argument"), Buffer("y", dtype, ((n + lanes) * lanes,), "result"), Axis(
        "i", n + lanes)

    def body() -> None:
        start = Affine.of(axis) - lanes
        at = b.op("lanes", b.index(start), type=Type("int64", lanes))
        low = b.op("lt", Literal(-1, at.type), at)
        inside = b.op("and", low, b.op("lt", at, Literal(n, at.type)))
        b.store(y, Affine.of(axis) * lanes, b.load(x, start, lanes, mask=inside))

    b.loop(axis, body)
    f = b.finish()
    assert verify(f).guarded == 0, "the mask proves that every access is in range"
    check(f, {x: numbers(dtype, n)}, name)


@pytest.mark.parametrize(("lanes", "dtype", "name"), covering(2, [1, 4, 16], DTYPES, TARGETS))
def test_gather_reads_where_the_indices_say(dtype: str, lanes: int, name: str) -> None:
    b, n = Builder("gather"), 37
    x, i64, m = Buffer("x", dtype, (n,), "argument"), Buffer("i", "int64", (lanes * 5,), "argument"), Buffer(
        "m", "bool", (lanes * 5,), "argument")
    every, some = Buffer("y", dtype, (lanes * 5,), "result"), Buffer("z", dtype, (lanes * 5,), "result")
    few, axis = Buffer("w", dtype, (lanes * 5,), "result"), Axis("k", 5)

    def body() -> None:
        at = Affine.of(axis) * lanes
        raw = b.load(i64, at, lanes)
        safe = b.op("max", b.op("min", raw, Literal(n - 1, raw.type)), Literal(0, raw.type))
        inside = b.op("and", b.op("lt", Literal(-1, raw.type), raw), b.op("lt", raw, Literal(n, raw.type)))
        b.store(every, at, b.gather(x, safe))
        b.store(some, at, b.gather(x, raw, mask=b.op("and", inside, b.load(m, at, lanes))))
        b.store(few, at, b.gather(x, safe, active=max(1, lanes // 2)))

    b.loop(axis, body)
    f = b.finish()
    assert verify(f).guarded == 0
    indices = np.random.default_rng(1).integers(-20, 60, lanes * 5)
    check(f, {x: numbers(dtype, n), i64: indices, m: numbers("bool", lanes * 5)}, name)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shift", [0, 1, 4])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_streaming_stores_need_no_alignment(dtype: str, shift: int, name: str) -> None:
    b, lanes = Builder("streaming"), 64 // ITEM_SIZES[dtype]
    x, y, axis = Buffer("x", dtype, (lanes * 8 + 1,), "argument"), Buffer("y", dtype, (lanes * 8 + 1,), "result"), Axis(
        "i", 8)
    one = Literal(1, INDEX)

    def body(count: Operand) -> list[Operand]:
        for part in (16, 32, 64):
            few = part // ITEM_SIZES[dtype]
            b.store(y, Affine.of(axis) * lanes, b.load(x, Affine.of(axis) * lanes, few), streaming=True)
        b.store(y, Affine.of(axis) * lanes + 1, b.load(x, Affine.of(axis) * lanes + 1, lanes), streaming=True)
        return [b.op("add", count, one)]

    (count,) = b.loop(axis, body, [Literal(0, INDEX)])
    total = Buffer("n", "int64", (1,), "result")
    b.store(total, Affine(), count)
    check(b.finish(), {x: numbers(dtype, lanes * 8 + 1)}, name, shift=shift)


def sums(b: Builder, x: Buffer, axis: Axis, low: Operand | None, high: Operand | None) -> tuple[Operand, ...]:
    """Sum of x, and of squares, over a loop that carries both."""
    def body(total: Operand, squares: Operand) -> list[Operand]:
        v = b.load(x, Affine.of(axis))
        return [b.op("add", total, v), b.op("add", squares, b.op("mul", v, v))]

    return b.loop(axis, body, [Literal(0, Type("int32")), Literal(7, Type("int32"))], low, high)


@pytest.mark.parametrize("name", TARGETS)
def test_loops_carry_values_and_may_not_run_at_all(name: str) -> None:
    b = Builder("sums")
    x, y, outer = Buffer("x", "int32", (10,), "argument"), Buffer("y", "int32", (11, 3, 2), "result"), Axis("o", 11)

    def body() -> None:
        n = b.index(Affine.of(outer))
        bounds: list[tuple[Operand | None, Operand | None]] = [
            (None, n), (b.op("min", n, Literal(9, INDEX)), None), (Literal(6, INDEX), Literal(3, INDEX))]
        for k, (low, high) in enumerate(bounds):
            for j, value in enumerate(sums(b, x, Axis("i", 10), low, high)):
                b.store(y, Affine.of(outer) * 6 + 2 * k + j, value)

    b.loop(outer, body)
    check(b.finish(), {x: numbers("int32", 10)}, name)


@pytest.mark.parametrize("name", TARGETS)
def test_values_rotate_through_a_loop(name: str) -> None:
    """Params that are yielded in another place, and an outer value that is yielded as it is."""
    b, x, y = Builder("rotate"), Buffer("x", "float32", (16,), "argument"), Buffer("y", "float32", (16,), "result")
    parts = [b.load(x, Affine.of(4 * i), 4) for i in range(4)]
    ends = b.loop(Axis("i", 5), lambda p, q, r, s: [q, r, p, parts[3]], parts)
    for i, v in enumerate(ends):
        b.store(y, Affine.of(4 * i), v)
    check(b.finish(), {x: np.arange(16, dtype=np.float32)}, name)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("likely", [None, True, False])
def test_conditions_stand_inside_each_other_and_inside_loops(likely: bool | None, name: str) -> None:
    b, n = Builder("conditions"), 12
    x, y = Buffer("x", "int32", (n,), "argument"), Buffer("y", "int32", (n, n), "result")
    i, j = Axis("i", n), Axis("j", n)

    def inner() -> None:
        def write() -> None:
            v = b.load(x, Affine.of(i) - Affine.of(j))
            b.when(b.op("lt", Literal(50, v.type), v), lambda: b.store(y, at, v), likely)

        at = Affine.of(i) * n + Affine.of(j)
        b.store(y, at, Literal(-1, Type("int32")))
        b.when(b.holds([Range(Affine.of(i) - Affine.of(j), 0, n)]), write, likely)

    def outer() -> None:
        b.loop(j, inner)

    b.loop(i, outer)
    f = b.finish()
    assert verify(f).guarded == 0, "the condition proves that the load is in range"
    check(f, {x: numbers("int32", n)}, name)


@pytest.mark.parametrize("name", TARGETS)
def test_a_function_computes_the_rows_that_it_is_asked_for(name: str) -> None:
    b = Builder("rows", by_rows=True)
    x, y, s, i = Buffer("x", "float32", (9, 4), "argument"), Buffer("y", "float32", (9, 4), "result"), Buffer(
        "s", "float32", (4,), "scratch"), Axis("i", 9)
    b.scratch(s)

    def body() -> None:
        b.store(s, Affine(), b.load(x, Affine.of(i) * 4, 4))
        b.store(y, Affine.of(i) * 4, b.op("mul", b.load(s, Affine(), 4), Literal(2.0, Type("float32", 4))))

    assert b.rows is not None
    b.loop(i, body, low=b.rows[0], high=b.rows[1])
    f = b.finish()
    for rows in ((0, 9), (2, 5), (8, 9), (4, 4)):
        check(f, {x: numbers("float32", 36)}, name, rows)


@pytest.mark.parametrize("make", [lambda b: None, lambda b: b.loop(Axis("i", 3), lambda: None)])
def test_a_function_may_do_nothing(make: Callable[[Builder], None]) -> None:
    b = Builder("nothing")
    make(b)
    check(b.finish(), {}, "host")


def test_indices_that_fit_are_narrow_on_a_32_bit_processor() -> None:
    """And those that may not fit are not: a product of an index that is a value, too."""
    b, i = Builder("narrow"), Axis("i", 40)
    x, y, z = Buffer("x", "float32", (40, 8), "argument"), Buffer("y", "float32", (40, 8), "result"), Buffer(
        "z", "int64", (40,), "result")

    def body() -> None:
        at = b.index(Affine.of(i))
        large = b.op("mul", b.op("mul", at, Literal(1 << 30, INDEX)), Literal(77, INDEX))
        b.store(z, Affine.of(i), b.op("add", large, at))
        b.store(y, Affine.of(i) * 8 + 3, b.load(x, Affine.of(i) * -8 + 315))

    b.loop(i, body)
    f = b.finish()
    text = "\n".join(emit_functions([f], named("32 bits")[0]).definitions)
    assert "phi i32" in text and "mul i32 %t" in text and "mul i64" in text and "phi i64" not in text
    check(f, {x: numbers("float32", 320)}, "32 bits")
    check(f, {x: numbers("float32", 320)}, "x86-64")
