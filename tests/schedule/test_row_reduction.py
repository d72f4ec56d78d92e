"""Passes over rows: softmax and normalisation, along rows and across them, on every target, whole and by rows."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Cast, Expr, Load, apply, cast, reduce
from tosaic.lowering.elements.float_functions import exponential, number
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import Address, For, Function, Let, LoadFrom, Prefetch, StoreTo, walk
from tosaic.lowering.loops.text import print_function
from tosaic.lowering.native.process.load import terms_of
from tosaic.lowering.schedule import describe, schedule

from .kernels import V3, V4, check

Element = Callable[..., Expr]
EXTENTS = [1, 7, 16, 100, 131]


def tensor(name: str, *shape: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, dtype, shape, "argument")


def over(primitive: str, axes: Sequence[Axis], element: Element, index: Sequence[Affine | Axis], rows: Sequence[int]) -> Expr:
    """A reduction of element(*index) with new axes in the places `rows`."""
    inner = {d: Axis(f"k{d}", axes[d].extent) for d in rows}
    place = [inner.get(d, x) for d, x in enumerate(index)]
    return reduce(primitive, tuple(inner.values()), element(*place))


def softmax(*shape: int, rows: Sequence[int] = (-1,), dtype: str = "float32") -> Kernel:
    """A softmax along the axes `rows`."""
    x, axes = tensor("x", *shape, dtype=dtype), tuple(Axis(f"i{d}", n) for d, n in enumerate(shape))
    along = [d % len(shape) for d in rows]

    def at(*index: Axis) -> Expr:
        return cast(Load(x, tuple(map(Affine.of, index))), "float32")

    most = over("maximum", axes, at, axes, along)

    def power(*index: Axis) -> Expr:
        return exponential(at(*index) - most)

    value = power(*axes) * (number(1.0) / over("add", axes, power, axes, along))
    return Kernel(Buffer("y", dtype, shape, "result"), axes, cast(value, dtype))


def normalized(*shape: int, rows: Sequence[int] = (-1,), gain: bool = False) -> Kernel:
    x, axes = tensor("x", *shape), tuple(Axis(f"i{d}", n) for d, n in enumerate(shape))
    along = [d % len(shape) for d in rows]
    share = 1 / np.prod([shape[d] for d in along])

    def at(*index: Axis) -> Expr:
        return Load(x, tuple(map(Affine.of, index)))

    mean = over("add", axes, at, axes, along) * number(share)

    def square(*index: Axis) -> Expr:
        away = at(*index) - mean
        return away * away

    variance = over("add", axes, square, axes, along) * number(share)
    value = (at(*axes) - mean) / apply("sqrt", variance + 1e-2)
    if gain:
        value = value * Load(tensor("gain", shape[-1]), (Affine.of(axes[-1]),))
    return Kernel(Buffer("y", "float32", shape, "result"), axes, value)


def log_of_the_sum(rows: int, columns: int) -> Kernel:
    """One number for each row, from reductions inside a reduction."""
    x, i = tensor("x", rows, columns), Axis("i", rows)

    def at(k: Axis) -> Expr:
        return Load(x, (Affine.of(i), Affine.of(k)))

    k, l = Axis("k", columns), Axis("l", columns)
    most = reduce("max", (l,), at(l))
    return Kernel(Buffer("y", "float32", (rows,), "result"), (i,), most + reduce("add", (k,), exponential(at(k) - most)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extent", EXTENTS)
def test_softmax_along_rows(extent: int) -> None:
    check([softmax(3, extent), softmax(extent)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extent", [1, 7, 16, 35])
def test_softmax_across_rows(extent: int) -> None:
    check([softmax(2, 3, extent, rows=(1,)), softmax(2, extent, 5, rows=(1,))])


def test_rows_of_several_axes() -> None:
    check([normalized(3, 5, 7, rows=(1, 2)), normalized(3, 5, 7, rows=(1, 2), gain=True), normalized(2, 3, 4, 20, rows=(1, 2)),
           normalized(2, 5, 3, 6, rows=(2, 3), gain=True)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extent", EXTENTS)
def test_normalisation(extent: int) -> None:
    check([normalized(3, extent), normalized(2, extent, gain=True), normalized(2, 3, extent, rows=(1,), gain=True)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extent", EXTENTS)
def test_one_result_for_each_row(extent: int) -> None:
    check([log_of_the_sum(4, extent), log_of_the_sum(40, 3)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_of_half_floats(dtype: str) -> None:
    check([softmax(3, 37, dtype=dtype), softmax(2, 5, 21, rows=(1,), dtype=dtype)])


def test_two_sums_of_one_pass() -> None:
    """The mean and the mean of squares: neither waits for the other."""
    x, i, j, k = tensor("x", 5, 90), Axis("i", 5), Axis("j", 90), Axis("k", 90)
    at = [Load(x, (Affine.of(i), Affine.of(a))) for a in (k, j)]
    total, squares = reduce("add", (k,), at[0]), reduce("add", (k,), at[0] * at[0])
    value = (at[1] - total) * squares
    kernel = Kernel(Buffer("y", "float32", (5, 90), "result"), (i, j), value)
    assert "row reduction: 2 passes" in describe(kernel, V4)
    check([kernel])


def test_integers_along_rows() -> None:
    """What a quantised softmax does first."""
    x, i, j, k = tensor("x", 6, 50, dtype="int8"), Axis("i", 6), Axis("j", 50), Axis("k", 50)
    most = reduce("max", (k,), Load(x, (Affine.of(i), Affine.of(k))))
    value = Cast(Load(x, (Affine.of(i), Affine.of(j))), "int32") - Cast(most, "int32")
    check([Kernel(Buffer("y", "int32", (6, 50), "result"), (i, j), value)])


def test_the_choice_says_how_many_passes_there_are() -> None:
    assert describe(softmax(8, 64), V4) == "y [i0<8 i1<64] row reduction: 3 passes, vectors of 16 along a row, 1 stored"
    assert describe(normalized(8, 64), V3) == "y [i0<8 i1<64] row reduction: 3 passes, vectors of 8 along a row"
    assert "across rows, 1 stored" in describe(softmax(8, 5, 64, rows=(1,)), V4)
    assert "streaming" in describe(softmax(1024, 4096), V4) and "streaming" not in describe(softmax(16, 4096), V4)


def test_exponentials_are_computed_once() -> None:
    """They are stored in a row of scratch memory."""
    f = schedule(softmax(8, 256), V4)
    assert [b.shape for b in f.scratch] == [(256,)]
    text = print_function(f)
    vectors = sum(isinstance(s, StoreTo) and s.address.buffer in f.scratch for s in walk(f.body))
    assert (text.count(" = scaleb"), text.count(" = sub")) == (vectors, 2 * vectors)


def test_sums_of_a_row_count_once_for_all_its_elements() -> None:
    """So that a softmax of a few thousand elements is called without a line of Python."""
    assert terms_of(softmax(5, 100)) == 3 * 500


def test_a_row_that_comes_from_memory_is_asked_for_early() -> None:
    """In one pass, a whole row before its use; where the tensor stays in the cache, and where there is none, not at all."""
    f = schedule(softmax(1024, 4096), V4)
    early = [s.address for s in walk(f.body) if isinstance(s, Prefetch)]
    read = [s.address for s in walk(f.body) if isinstance(s, LoadFrom)]
    assert early and all(Address(a.buffer, a.base, a.offset - 4096) in read for a in early)
    assert len(early) * 2 < len(read)
    for cached in (schedule(softmax(16, 64), V4), schedule(softmax(1024, 4096), replace(V4, has_cache=False))):
        assert not any(isinstance(s, Prefetch) for s in walk(cached.body))


SHARED = replace(V4, costs=replace(V4.costs, shared_cache_bytes=40 << 20))
"""A machine whose threads share a cache that holds a softmax of 1024 rows, with its input."""


def stores(f: Function) -> set[bool]:
    """True if the stores of results go past the caches."""
    return {s.streaming for s in walk(f.body) if isinstance(s, StoreTo) and s.address.buffer.role == "result"}


def test_several_threads_store_into_the_cache_that_they_share() -> None:
    """If that holds what they read and write; one thread stores past it."""
    k = softmax(1024, 4096)
    for past in (schedule(k, SHARED), schedule(k, V4, keeps=3), schedule(softmax(1300, 4096), SHARED, keeps=3)):
        assert stores(past) == {True}
    assert stores(schedule(k, SHARED, keeps=3)) == {False}


def test_lines_of_outputs_are_asked_for_in_the_longest_pass_before() -> None:
    """Each once, where they are stored; not where stores go past the caches, or where the outputs stay in the second-level
    cache."""
    def asked(f: Function) -> list[Address]:
        return [s.address for s in walk(f.body) if isinstance(s, Prefetch) and s.writes]

    f = schedule(softmax(1024, 4096), SHARED, keeps=3)
    loop = next(s for s in walk(f.body) if isinstance(s, For) and any(isinstance(x, Prefetch) for x in s.body))
    lines = [s.address for s in loop.body if isinstance(s, Prefetch) and s.writes]
    assert lines == asked(f) and len(lines) * 16 * 64 == 4096 and {a.buffer.role for a in lines} == {"result"}
    assert any(isinstance(s, Let) and s.op == "scaleb" for s in loop.body)
    assert not asked(schedule(softmax(1024, 4096), V4)) and not asked(schedule(softmax(16, 64), SHARED, keeps=3))
    check([softmax(40, 4096)], targets={"shared": SHARED})


def test_code_does_not_grow_with_the_row() -> None:
    def size(extent: int) -> int:
        return sum(1 for _ in walk(schedule(softmax(4, extent), V4).body))

    assert size(1 << 14) <= size(1 << 10)
    assert sum(isinstance(s, For) for s in walk(schedule(softmax(4, 1 << 10), V4).body)) == 4


@settings(deadline=None, max_examples=8, derandomize=True)
@given(st.lists(st.integers(1, 12), min_size=2, max_size=4), st.data())
def test_any_shape(shape: list[int], data: st.DataObject) -> None:
    rows = sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape))))
    make = data.draw(st.sampled_from([softmax, normalized]))
    check([make(*shape, rows=rows)], targets={"512 bits": V4, "256 bits, no masks": V3})
