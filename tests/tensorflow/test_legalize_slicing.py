"""Slice and StridedSlice as TOSA: all masks, strides of both signs, and places that are known at run time only."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .legalized import Graph, numbered

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
Entry = tuple[int, int, int, set[str]]
"""begin, end, stride, and the masks that are set."""


def strided_slice(g: Graph, x: Any, entries: list[Entry]) -> Any:
    masks = {m: sum((m in own) << i for i, (*_, own) in enumerate(entries)) for m in MASKS}
    begin, end, strides = (np.array([entry[k] for entry in entries], np.int64) for k in range(3))
    return g("StridedSlice", x, g.constant(begin), g.constant(end), g.constant(strides), **masks)


def random_entries(random: np.random.Generator, dims: tuple[int, ...]) -> list[Entry]:
    """Any masks; what is taken at one place is in range, and has a positive stride."""
    used = int(random.integers(0, len(dims) + 1))
    at = int(random.integers(0, used + 1)) if random.random() < 0.4 else None
    entries: list[Entry] = []
    for number in range(used + 1):
        if number == at:
            entries.append((int(random.integers(-9, 9)), int(random.integers(-9, 9)), 1, {"ellipsis_mask", *some(random)}))
        if random.random() < 0.2 and len(dims) + sum("new_axis_mask" in e[3] for e in entries) < 6:
            entries.append((3, -5, 2, {"new_axis_mask", *some(random)}))
        if number < used:
            n = dims[number if at is None or number < at else len(dims) - used + number]
            entries.append(random_entry(random, n))
    return entries


def some(random: np.random.Generator) -> set[str]:
    """Masks that do not count where another one is set."""
    return {m for m in ("begin_mask", "end_mask", "shrink_axis_mask") if random.random() < 0.3}


def random_entry(random: np.random.Generator, n: int) -> Entry:
    if random.random() < 0.3:
        return int(random.integers(-n, n)), int(random.integers(-9, 9)), int(random.integers(1, 3)), {
            "shrink_axis_mask", *(m for m in ("begin_mask", "end_mask") if random.random() < 0.3)}
    stride = int(random.choice([1, 1, 1, 2, 3, 5, -1, -2, -3]))
    low, high = sorted(random.integers(-n - 2, n + 3, 2).tolist(), key=lambda p: p + n * (p < 0), reverse=stride < 0)
    return low, high, stride, {m for m in ("begin_mask", "end_mask") if random.random() < 0.4}


def taken(x: Array, entries: list[Entry]) -> Array:
    """The same with Python's own slices."""
    index: list[Any] = []
    for low, high, step, masks in entries:
        if "ellipsis_mask" in masks:
            index.append(...)
        elif "new_axis_mask" in masks:
            index.append(None)
        elif "shrink_axis_mask" in masks:
            index.append(low)
        else:
            index.append(slice(None if "begin_mask" in masks else low, None if "end_mask" in masks else high, step))
    found: Array = x[tuple(index)]
    return found


@pytest.mark.parametrize("seed", range(7))
def test_strided_slices_of_any_form(seed: int) -> None:
    """25 slices with elements for each seed."""
    random = np.random.default_rng(seed)
    g = Graph()
    found, expected = [], []
    while len(found) < 25:
        dims = tuple(random.integers(1, 8, int(random.integers(1, 6))).tolist())
        if not g.arguments or random.random() < 0.3:
            x, array = g.argument(numbered(*dims)), numbered(*dims)
        entries = random_entries(random, array.shape)
        right = taken(array, entries)
        if right.size and right.ndim <= 6:
            found.append(strided_slice(g, x, entries))
            expected.append(right)
    for mine, right in zip(g.check(*found), expected, strict=True):
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64"])
def test_elements_of_every_type_are_taken(dtype: str) -> None:
    g = Graph()
    x, i = g.argument(numbered(5, 7, dtype=dtype)), g.argument(np.int32(3))
    one = g.integers(1)
    at = g("StridedSlice", x, g("Pack", i, axis=0), g.integers(0), one, shrink_axis_mask=1)
    g.check(strided_slice(g, x, [(4, 0, -2, set()), (1, 7, 3, set())]), strided_slice(g, x, [(0, 5, 2, set())]), at)


def test_an_empty_slice_is_left_out_of_what_it_is_joined_to() -> None:
    g = Graph()
    x = g.argument(numbered(4, 3))
    empty = strided_slice(g, x, [(3, 1, 1, set())])
    also = g("Slice", x, g.integers(4, 0), g.integers(0, 3))
    g.check(g("ConcatV2", empty, x, also, g.constant(np.int32(0))), g("Shape", empty, result="tensor<*xi32>"))


def test_slices_of_known_places() -> None:
    g = Graph()
    x = g.argument(numbered(4, 5, 6))
    g.check(*(g("Slice", x, g.integers(*begin), g.integers(*size)) for begin, size in (
        ((0, 0, 0), (-1, -1, -1)), ((1, 2, 3), (-1, 2, 1)), ((3, 0, 5), (1, 5, 1)))))


# ---- run time --------------------------------------------------------------------------------------------------------
def place(g: Graph, *entries: Any) -> Any:
    """A vector of which only some entries are known."""
    return g("Pack", *(g.constant(np.int32(n)) if isinstance(n, int) else n for n in entries), axis=0)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_slice_that_starts_at_a_place_of_run_time(dtype: Any) -> None:
    for start in (0, 1, 2):
        g = Graph()
        x, begin = g.argument(numbered(4, 5, 6)), g.argument(np.array([start, 2, start + 1], dtype))
        g.check(g("Slice", x, begin, g.constant(np.array([2, 1, 3], dtype))))
        one, zero = g.constant(np.array(1, dtype)), g.constant(np.array(0, dtype))
        begin = g("Pack", g.argument(np.array(start, dtype)), one, zero, axis=0)
        g.check(g("Slice", x, begin, g.constant(np.array([2, -1, -1], dtype))))


@pytest.mark.parametrize("i", [0, 1, 3, -1, -4])
def test_one_row_at_a_place_of_run_time(i: int) -> None:
    g = Graph()
    x, at = g.argument(numbered(4, 5, 4)), g.argument(np.int32(i))
    after = g("AddV2", at, g.constant(np.int32(1)))
    ones = g.integers(1, 1, 1)
    g.check(g("StridedSlice", x, place(g, at), place(g, after), g.integers(1), shrink_axis_mask=1),
            g("StridedSlice", x, place(g, 0, at), place(g, 0, after), g.integers(1, 1), begin_mask=1, end_mask=1,
              shrink_axis_mask=2),
            g("StridedSlice", x, place(g, 0, at), place(g, 0, 0), g.integers(1, 1), ellipsis_mask=1, shrink_axis_mask=2),
            g("StridedSlice", x, place(g, at, 1, at), place(g, 0, 4, 0), ones, shrink_axis_mask=5),
            g("StridedSlice", x, place(g, at, 0, at), place(g, 0, 0, 0), ones, new_axis_mask=2, shrink_axis_mask=5))


@pytest.mark.parametrize("i", [0, 1, 2])
def test_some_rows_from_a_place_of_run_time_on(i: int) -> None:
    g = Graph()
    x, at = g.argument(numbered(5, 6)), g.argument(np.int32(i))
    two, back = g("AddV2", g.constant(np.int32(2)), at), g("Sub", at, g.constant(np.int32(-3)))
    mine = [g("StridedSlice", x, place(g, at), place(g, two), g.integers(1)),
            g("StridedSlice", x, place(g, at), place(g, back), g.integers(2)),
            g("StridedSlice", x, place(g, two, at), place(g, back, two), g.integers(1, 1), shrink_axis_mask=0),
            g("StridedSlice", x, place(g, 0, back), place(g, 5, at), g.integers(2, -1))]
    g.check(*mine)


def test_extents_that_the_text_promises_are_relied_on() -> None:
    g = Graph()
    x, at, end = g.argument(numbered(5, 6)), g.argument(np.int32(1)), g.argument(np.int32(3))
    g.check(g("StridedSlice", x, place(g, at), place(g, end), g.integers(1), result="tensor<2x6xf32>"),
            g("StridedSlice", x, place(g, at), place(g, 0), g.integers(1), end_mask=1, result="tensor<4x?xf32>"),
            g("StridedSlice", x, place(g, 0), place(g, end), g.integers(1), result="tensor<3x6xf32>"))


@pytest.mark.parametrize(("build", "message"), [
    (lambda g, x, i: g("StridedSlice", x, place(g, 0), place(g, i), g.integers(1)), "how many elements the slice takes"),
    (lambda g, x, i: g("StridedSlice", x, place(g, i), place(g, 0), g.integers(1), end_mask=1), "how many elements"),
    (lambda g, x, i: g("Slice", x, g.integers(0, 0), place(g, i, 2)), "the size of the slice must be known"),
    (lambda g, x, i: g("Slice", x, place(g, i, 0), g.integers(-1, 2)), "the size of the slice must be known"),
    (lambda g, x, i: g("Slice", x, g.integers(3, 0), g.integers(3, 2)), "3 elements from 3 on are taken from 5"),
    (lambda g, x, i: g("StridedSlice", x, g.integers(0), g.integers(2), place(g, i)), "the strides must be known"),
    (lambda g, x, i: g("StridedSlice", x, g.integers(5), g.integers(2), g.integers(1), shrink_axis_mask=1), "element 5"),
    (lambda g, x, i: strided_slice(g, x, [(0, 1, 1, set())] * 3), "names 3 axes of a tensor of rank 2"),
    (lambda g, x, i: strided_slice(g, x, [(0, 1, 1, {"ellipsis_mask"})] * 2), "more than one ellipsis"),
    (lambda g, x, i: strided_slice(g, x, [(0, 1, 0, set())]), "a stride is 0")])
def test_a_slice_that_cannot_be_compiled_is_refused_with_the_reason(build: Any, message: str) -> None:
    g = Graph()
    result = build(g, g.argument(numbered(5, 6)), g.argument(np.int32(1)))
    with pytest.raises(Problem, match=message) as caught:
        g.tosa(result)
    assert caught.value.position is not None


# ---- writing ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_a_part_is_replaced(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    g = Graph()
    array = numbered(4, 5, 6)
    x = g.argument(array)
    found: list[Any] = []
    while len(found) < 12:
        entries = random_entries(random, array.shape)
        part = taken(array, entries)
        if not part.size or part.ndim > 6:
            continue
        value = g.argument(-numbered(*(part.shape if random.random() < 0.7 else part.shape[1:])))
        masks = {m: sum((m in own) << i for i, (*_, own) in enumerate(entries)) for m in MASKS}
        begin, end, strides = (g.integers(*(entry[k] for entry in entries)) if entries else g.constant(
            np.zeros(0, np.int32)) for k in range(3))
        found.append(g("TensorStridedSliceUpdate", x, begin, end, strides, value, **masks))
        whole = g.argument(-numbered(*part.shape))
        given = g.integers(*array.shape), begin, end, strides, whole
        found.append(g("StridedSliceGrad", *given, **masks, result="tensor<*xf32>"))
    g.check(*found)
