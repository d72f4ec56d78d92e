"""Which strategy and which numbers a kernel gets: by the pattern of its expression and the target."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Cast, Const, Expr, Load, Reduce, apply, cast, guard, reduce
from tosaic.lowering.elements.float_functions import exponential, tanh
from tosaic.lowering.graph.types import ITEM_SIZES
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import For, Function, If, Let, Literal, LoadFrom, Prefetch, StoreTo, walk
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.code_size_model import TileCode, cheapest, tolerated
from tosaic.lowering.schedule.contraction.register_tile import choose_tile
from tosaic.lowering.target.target import Target

from .kernels import TARGETS, V2, V3, V4, check

DOT4 = TARGETS["512 bits, dot4"]
RNG = np.random.default_rng(5)


def product(m: int, n: int, k: int, dtype: str = "float32", zero_point: int = 0, weight: np.ndarray | None = None,
            signed: str = "int8") -> Kernel:
    """x[m, k] * w[n, k]."""
    wide = "float32" if dtype == "float32" else "int32"
    i, j, l = Axis("m", m), Axis("n", n), Axis("k", k)
    data = RNG.integers(-127, 128, (n, k)).astype(signed if dtype == "int8" else dtype) if weight is None else weight
    w = Buffer("w", data.dtype.name, (n, k), "constant", data)
    a: Expr = cast(Load(Buffer("x", dtype, (m, k), "argument"), (Affine.of(i), Affine.of(l))), wide)
    if zero_point:
        a = a - zero_point
    body = a * cast(Load(w, (Affine.of(j), Affine.of(l))), wide)
    return Kernel(Buffer("y", wide, (m, n), "result"), (i, j), reduce("add", (l,), body))


def statements(f: Function, kind: type) -> int:
    return sum(isinstance(s, kind) for s in walk(f.body))


@pytest.mark.parametrize(("target", "expected"), [
    (DOT4, "dot4, tiles of 14 rows by 2 vectors of 16"),
    (V4, "dot2, tiles of 14 rows by 2 vectors of 16"),
    (V3, "dot2, tiles of 5 rows by 2 vectors of 8"),
    (V2, "dot2, tiles of 5 rows by 2 vectors of 4"),
    (TARGETS["4 bytes"], "multiply, tiles of"),
])
def test_bytes_are_multiplied_by_what_the_target_has(target: Target, expected: str) -> None:
    assert f"contraction: {expected}" in describe(product(14_000, 64, 32, "int8"), target)


@pytest.mark.parametrize(("zero_point", "step"), [(3, "dot4"), (-128, "dot4"), (128, "multiply")])
def test_a_zero_point_of_the_weight_is_taken_off_by_rows_if_it_is_a_byte(zero_point: int, step: str) -> None:
    k = product(20, 16, 8, "int8")
    assert isinstance(k.value, Reduce)
    x, w = k.value.body.args  # type: ignore[attr-defined]
    k = replace(k, value=reduce("add", k.value.axes, x * (w - zero_point)))
    assert f"contraction: {step}" in describe(k, DOT4)
    check([k])


@pytest.mark.parametrize(("places", "step"), [(9, "dot4"), (8192, "multiply")])
def test_a_kernel_of_very_many_places_takes_no_products_of_four_bytes(places: int, step: str) -> None:
    """Where padding leaves out places, each would have code of its own."""
    o, f, k, c = Axis("o", 3), Axis("f", 16), Axis("k", places), Axis("c", 4)
    weight = Buffer("w", "int8", (16, places, 4), "constant", RNG.integers(-127, 128, (16, places, 4)).astype(np.int8))
    at = Affine.of(o) * places + Affine.of(k) - 5
    x = cast(Load(Buffer("x", "int8", (2 * places, 4), "argument"), (at, Affine.of(c))), "int32")
    body = guard([Range(at, 0, 2 * places)], x, 0) * cast(Load(weight, (Affine.of(f), Affine.of(k), Affine.of(c))), "int32")
    kernel = Kernel(Buffer("y", "int32", (3, 16), "result"), (o, f), reduce("add", (k, c), body))
    assert f"contraction: {step}" in describe(kernel, DOT4)
    assert statements(schedule(kernel, DOT4), Let) < 3000
    if places < 100:  # the loops of the other are interpreted statement by statement
        check([kernel])


@pytest.mark.parametrize("zero_point", [-128, 127])
def test_the_most_extreme_bytes_are_summed_exactly(zero_point: int) -> None:
    k = product(9, 24, 70, "int8", zero_point, np.where(RNG.integers(0, 2, (24, 70)), -128, 127).astype(np.int8))
    x = next(iter({b for b in (e.buffer for e in loads_of(k)) if b.data is None}))
    assert "dot4" in describe(k, DOT4)
    check([k], data={x: np.where(RNG.integers(0, 2, (9, 70)), -128, 127).astype(np.int8)})


def loads_of(k: Kernel) -> list[Load]:
    from tosaic.lowering.elements.traverse import loads
    return loads(k.value)


def test_weights_are_packed_in_the_narrowest_type_that_holds_them() -> None:
    f = schedule(product(64, 32, 16, "int8"), TARGETS["4 bytes"])
    assert [b.dtype for b in f.params if b.role == "constant"] == ["int8"]
    f = schedule(product(64, 32, 16, "int32", weight=RNG.integers(-999, 999, (32, 16)).astype(np.int32)), V4)
    assert [b.dtype for b in f.params if b.role == "constant"] == ["int16"]


@pytest.mark.parametrize(("rows", "zero_point", "dtype"), [(64, 0, "int16"), (1, 0, "int8"), (1, 3, "int16")])
def test_pairs_of_16_bits_are_bytes_where_one_tile_reads_them(rows: int, zero_point: int, dtype: str) -> None:
    """And they fit them."""
    k = product(rows, 32, 16, "int8", weight=np.where(RNG.integers(0, 2, (32, 16)), -128, 127).astype(np.int8))
    assert isinstance(k.value, Reduce)
    x, w = k.value.body.args  # type: ignore[attr-defined]
    k = replace(k, value=reduce("add", k.value.axes, x * (w - zero_point)))
    f = schedule(k, V3)
    assert [b.dtype for b in f.params if b.role == "constant" and b.name.endswith(".packed")] == [dtype]
    check([k])


def test_a_packed_weight_takes_the_place_of_the_original() -> None:
    f = schedule(product(64, 32, 16), V4)
    (packed,) = (b for b in f.params if b.role == "constant")
    assert packed.name == "y.packed" and packed.nbytes == 32 * 16 * 4


def test_a_large_second_operand_is_read_by_columns_first() -> None:
    k = product(100, 512, 512)
    assert "columns outermost" in describe(k, V4)
    assert "rows outermost" in describe(k, replace(V4, l2_bytes=1 << 24))


def test_rows_that_share_cache_sets_make_shorter_tiles() -> None:
    assert "tiles of 14 rows" in describe(product(5040, 64, 100), V4)
    assert "tiles of 8 rows" in describe(product(5040, 64, 1024), V4)


def test_small_products_have_smaller_tiles_large_ones_the_fastest() -> None:
    """Code size against work."""
    assert statements(schedule(product(28, 64, 9), V4), Let) < statements(schedule(product(28_000, 64, 9), V4), Let)
    assert choose_tile(28, 64, 16, V4, False, None, TileCode(1_000_000, 0, 1)) == choose_tile(28, 64, 16, V4, False)
    assert choose_tile(28, 64, 16, V4, False, None, TileCode(9, 0, 1)).rows < choose_tile(28, 64, 16, V4, False).rows


def test_less_code_takes_only_a_little_longer() -> None:
    sizes, lines = (8, 4, 2, 1), {8: 800, 4: 400, 2: 200, 1: 100}
    for work in (100, 10_000, 1_000_000, 100_000_000):
        chosen = cheapest(sizes, lambda size: work * (1 + 0.1 * (8 / size - 1)), lambda size: lines[size])
        assert work * 0.1 * (8 / chosen - 1) <= tolerated(work)
    assert cheapest(sizes, lambda size: 100 / size, lambda size: lines[size]) == 1
    assert cheapest(sizes, lambda size: 1e8 / size, lambda size: lines[size]) == 8


def test_an_output_past_the_caches_is_streamed() -> None:
    i = Axis("i", 1 << 12)
    k = Kernel(Buffer("y", "float32", (1 << 12,), "result"), (i,), Load(Buffer("x", "float32", (1 << 12,), "argument"), (
        Affine.of(i),)) + 1)
    streams = [s.streaming for s in walk(schedule(k, replace(V4, streaming_bytes=1 << 12)).body) if isinstance(s, StoreTo)]
    assert streams and all(streams)
    read_again = replace(k, out=replace(k.out, role="temporary"))
    assert "streaming" not in describe(read_again, replace(V4, streaming_bytes=1 << 12))
    check([k], targets={"streaming": replace(V4, streaming_bytes=1 << 12)})


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_what_a_streamed_output_needs_is_prefetched_a_thousand_bytes_early(dtype: str) -> None:
    """Line by line, if it comes from memory."""
    i, j, size = Axis("i", 1 << 4), Axis("j", 1 << 15), ITEM_SIZES[dtype]
    x = Load(Buffer("x", dtype, (1 << 4, 1 << 15), "argument"), (Affine.of(i), Affine.of(j)))
    y = Load(Buffer("y", "float32", (1 << 15,), "argument"), (Affine.of(j),))
    k = Kernel(Buffer("z", "float32", (1 << 4, 1 << 15), "result"), (i, j), cast(x, "float32") + y)
    t = replace(V4, streaming_bytes=1 << 12, l2_bytes=size << 19)
    f = schedule(k, t)
    early = [s for s in walk(f.body) if isinstance(s, Prefetch)]
    read = [s.address.offset for s in walk(f.body) if isinstance(s, LoadFrom) and s.address.buffer is x.buffer]
    assert {s.address.buffer for s in early} == {x.buffer} and all(s.near for s in early)
    assert [s.address.offset for s in early] == [o + 1024 // size for o in read if o * size % 64 == 0]
    assert not any(isinstance(s, Prefetch) for s in walk(schedule(k, V4).body))
    check([k], targets={"streaming": t})


def test_padding_costs_no_test_in_the_interior() -> None:
    """All conditions of a padded convolution are settled or loops' bounds: there is no mask and no branch."""
    oh, ow, oc = Axis("oh", 20), Axis("ow", 40), Axis("oc", 16)
    kh, kw, ic = Axis("kh", 3), Axis("kw", 3), Axis("ic", 8)
    from tosaic.lowering.elements.affine import Range
    h, w = Affine.of(oh) + kh - 1, Affine.of(ow) + kw - 1
    x = Buffer("x", "float32", (20, 40, 8), "argument")
    weight = Buffer("w", "float32", (16, 3, 3, 8), "constant", RNG.integers(-3, 4, (16, 3, 3, 8)).astype(np.float32))
    pixel = guard([Range(h, 0, 20), Range(w, 0, 40)], Load(x, (h, w, Affine.of(ic))), 0)
    body = pixel * Load(weight, tuple(map(Affine.of, (oc, kh, kw, ic))))
    k = Kernel(Buffer("y", "float32", (20, 40, 16), "result"), (oh, ow, oc), reduce("add", (kh, kw, ic), body))
    f = schedule(k, V4)
    assert statements(f, If) == 0
    assert not any(isinstance(s, Let) and s.op == "select" for s in walk(f.body))
    check([k], interpret=False)


def softmax(rows: int, columns: int) -> Kernel:
    """exp(x - max) / sum(exp(x - max)): a reduction inside a reduction, and both beside the elements."""
    i, j, k, l = Axis("i", rows), Axis("j", columns), Axis("k", columns), Axis("l", columns)
    x = Buffer("x", "float32", (rows, columns), "argument")

    def at(column: Axis) -> Expr:
        return Load(x, (Affine.of(i), Affine.of(column)))

    most = reduce("max", (l,), at(l))
    total = reduce("add", (k,), exponential(at(k) - most))
    return Kernel(Buffer("y", "float32", (rows, columns), "result"), (i, j), exponential(at(j) - most) / total)


def test_reductions_that_do_not_change_in_a_loop_stand_before_it() -> None:
    f = schedule(softmax(5, 100), V4)
    loops = [s for s in walk(f.body) if isinstance(s, For)]
    depth = max(nesting(s) for s in loops)
    assert depth == 2
    check([softmax(5, 100), softmax(3, 7)])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("rows", "pattern"), [(40, "contraction"), (3, "window")])
def test_the_rows_of_a_tile_run_along_an_axis_around_the_innermost(rows: int, pattern: str) -> None:
    """Values of attention, put together from their heads: the second operand differs from head to head."""
    m, h, n, k = Axis("m", rows), Axis("h", 6), Axis("n", 32), Axis("k", 20)
    at = {a: Affine.of(a) for a in (m, h, n, k)}
    scores = Load(Buffer("p", "float32", (6, rows, 20), "argument"), (at[h], at[m], at[k]))
    values = Load(Buffer("v", "float32", (6, 20, 32), "argument"), (at[h], at[k], at[n]))
    kernel = Kernel(Buffer("y", "float32", (rows, 6, 32), "result"), (m, h, n), reduce("add", (k,), scores * values))
    assert pattern in describe(kernel, V4)
    check([kernel])


def test_the_constants_of_a_long_epilogue_come_from_memory() -> None:
    """In registers they would take the place of sums."""
    k = product(280, 64, 160)
    k = replace(k, value=tanh(k.value))
    f = schedule(k, V4)
    assert any(b.name.endswith("constants") for b in f.params)
    long = [s for s in walk(f.body) if isinstance(s, Let) and s.op == "fma" and s.result.type.lanes == 16]
    assert not any(isinstance(a, Literal) and a.type.dtype == "float32" for s in long for a in s.args)
    check([k], interpret=False)


def nesting(loop: For) -> int:
    return 1 + max((nesting(s) for s in loop.body if isinstance(s, For)), default=0)


def test_the_operations_of_two_vectors_come_by_turns_where_a_chain_is_long() -> None:
    def chain(n: int) -> Kernel:
        i = Axis("i", n)
        x = Load(Buffer("x", "float32", (n,), "argument"), (Affine.of(i),))
        return Kernel(Buffer("y", "float32", (n,), "result"), (i,), tanh(x))

    k, small = chain(1 << 14), chain(1 << 6)
    assert statements(schedule(small, V3), Let) < 0.6 * statements(schedule(k, V3), Let)
    lines = [s.op for s in walk(schedule(k, V3).body) if isinstance(s, Let) and s.result.type.lanes == 8]
    assert lines[::2] == lines[1::2] and lines.count("div") == 2
    assert statements(schedule(k, V4), Let) == statements(schedule(small, V4), Let)  # it sees the next vector by itself
    check([small, replace(small, value=tanh(exponential(small.value)))])


def test_a_long_chain_of_operations_needs_no_recursion() -> None:
    i = Axis("i", 40)
    value: Expr = Load(Buffer("x", "int32", (40,), "argument"), (Affine.of(i),))
    for n in range(2000):
        value = apply("xor" if n % 2 else "add", value, Const(n, "int32"))
    f = schedule(Kernel(Buffer("y", "int32", (40,), "result"), (i,), value), V4)
    assert statements(f, Let) >= 2000


def test_scheduling_twice_gives_the_same_loops() -> None:
    from tosaic.lowering.loops.text import print_function
    for make in (lambda: product(33, 40, 20), lambda: softmax(3, 40)):
        np.random.seed(0)
        first, second = (schedule(k, DOT4) for k in (make(), make()))
        assert print_function(first) == print_function(second)


def test_much_work_on_the_sums_of_a_tile_is_done_by_a_loop() -> None:
    """Over the tile's vectors, so that its code does not grow with the tile."""
    k = product(280, 64, 160, "int8")
    value: Expr = k.value
    for n in range(40):
        value = value * (n + 2) if n % 2 else apply("xor", value, Const(n, "int32"))
    f = schedule(replace(k, value=value), DOT4)
    assert 20 <= sum(1 for s in walk(f.body) if isinstance(s, Let) and s.op == "mul") <= 100
    check([replace(k, value=value)], interpret=False)


def test_a_weight_cast_from_half_floats_is_packed_as_it_is_used() -> None:
    k = product(20, 16, 8, weight=RNG.integers(-3, 4, (16, 8)).astype(np.float16))
    assert any(isinstance(e, Cast) for e in [k.value.body.args[1]])  # type: ignore[attr-defined]
    assert "contraction: fma" in describe(k, V4)
    check([k])
