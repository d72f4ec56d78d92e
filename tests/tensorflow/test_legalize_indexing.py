"""Gather, scatter, one hot, and what is made of shapes and constants, as TOSA."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .legalized import Graph, numbered, of_any_shape

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64")
COMBINED = ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


def indices(seed: int, below: int, *dims: int, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(seed).integers(0, below, dims).astype(dtype)


# ---- gather ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather_along_an_axis(axis: int, dtype: Any) -> None:
    g = Graph()
    x, at = g.argument(numbered(4, 5, 6)), g.constant(dtype(axis))
    n = (4, 5, 6)[axis]
    places = [g.argument(indices(k, n, *dims, dtype=dtype)) for k, dims in enumerate(((), (3,), (2, 3)))]
    places += [g.constant(indices(9, n, 4, dtype=dtype)), g.constant(dtype(1))]
    g.check(*(g("GatherV2", x, i, at, batch_dims=0) for i in places))


@pytest.mark.parametrize(("axis", "batch"), [(1, 1), (2, 1), (2, 2), (-1, 1), (-2, -1), (3, 2), (3, -2)])
def test_gather_in_batches(axis: int, batch: int) -> None:
    g = Graph()
    dims = (2, 3, 4, 5)
    x = g.argument(numbered(*dims))
    count = batch if batch > 0 else 2
    i = g.argument(indices(axis + 9, dims[axis], *dims[:count], *(3,) * (2 if batch == -2 else 1)))
    g.check(g("GatherV2", x, i, g.constant(np.int32(axis)), batch_dims=batch))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type_are_gathered_and_scattered(dtype: str) -> None:
    g = Graph()
    x, i = g.argument(numbered(5, 4, dtype=dtype)), g.argument(np.array([[3], [0]], np.int32))
    updates = g.argument(numbered(2, 4, dtype=dtype))
    hot = g("OneHot", i, g.constant(np.int32(4)), g.constant(np.array(1, dtype)), g.constant(np.array(0, dtype)), axis=-1,
            result=of_any_shape(dtype))
    once = g("ScatterNd", g.integers_of([[3], [1]]), updates, g.integers(5, 4), result=of_any_shape(dtype))
    g.check(g("Gather", x, i), g("GatherNd", x, i), g("TensorScatterUpdate", x, i, updates), hot, once)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_gather_by_several_axes_at_once(depth: int) -> None:
    g = Graph()
    x = g.argument(numbered(3, 4, 5))
    places = np.stack([indices(d, (3, 4, 5)[d], 2, 6) for d in range(depth)], -1) if depth else np.zeros((2, 6, 0), np.int32)
    given = g.argument(places) if depth else g.constant(places)
    g.check(g("GatherNd", x, given), g("GatherNd", x, g.constant(places.astype(np.int64))))


def test_an_index_out_of_range_reads_the_nearest_row_and_writes_none() -> None:
    """TensorFlow refuses it; compiled code only must not fail."""
    g = Graph()
    x, i = g.argument(numbered(4, 3)), g.argument(np.array([[-7], [9], [2]], np.int64))
    both = g.argument(np.array([[0, 5], [3, 1]], np.int32))
    results = (g("GatherNd", x, i), g("TensorScatterUpdate", x, i, g.argument(-numbered(3, 3))),
               g("TensorScatterUpdate", x, both, g.argument(np.float32([-1, -2]))))
    found = Traced(g.tosa(*results), "main").compile()(*g.arguments)
    expected = [g.arguments[0][[0, 3, 2]], g.arguments[0].copy(), g.arguments[0].copy()]
    expected[1][2], expected[2][3, 1] = -numbered(3, 3)[2], -2
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, right)


# ---- scatter ---------------------------------------------------------------------------------------------------------
def places_of(g: Graph, known: bool, *dims: int, below: tuple[int, ...], seed: int = 0) -> Any:
    found = np.stack([indices(seed + d, n, *dims) for d, n in enumerate(below)], -1)
    return g.constant(found) if known else g.argument(found)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("dtype", COMBINED)
def test_updates_that_share_a_place_are_combined(dtype: str, known: bool) -> None:
    g = Graph()
    x = g.argument(numbered(5, 3, dtype=dtype))
    i = places_of(g, known, 4, 2, below=(5,))
    updates = g.argument(numbered(4, 2, 3, dtype=dtype))
    other = g.argument(np.asarray(10 - numbered(4, 2, 3) % 7).astype(dtype))
    g.check(g("ScatterNd", i, updates, g.integers(5, 3), result=of_any_shape(dtype)), g("TensorScatterAdd", x, i, updates),
            g("TensorScatterSub", x, i, updates), g("TensorScatterMax", x, i, other), g("TensorScatterMin", x, i, other))


@pytest.mark.parametrize("known", [False, True])
def test_scatter_by_several_axes_at_once(known: bool) -> None:
    g = Graph()
    x = g.argument(numbered(3, 4, 2))
    i = places_of(g, known, 7, below=(3, 4), seed=3)
    updates = g.argument(-numbered(7, 2))
    all_axes = places_of(g, known, 5, below=(3, 4, 2), seed=8)
    g.check(g("ScatterNd", i, updates, g.integers(3, 4, 2), result="tensor<*xf32>"), g("TensorScatterAdd", x, i, updates),
            g("TensorScatterUpdate", x, i, updates), g("TensorScatterUpdate", x, all_axes, g.argument(-numbered(5))))


def test_more_updates_than_rows() -> None:
    g = Graph()
    x, i = g.argument(numbered(3, 2)), g.argument(np.array([[0], [1], [0], [2], [2], [0], [1]], np.int32))
    updates = g.argument(-numbered(7, 2))
    g.check(g("TensorScatterUpdate", x, i, updates), g("ScatterNd", i, updates, g.integers(3, 2), result="tensor<*xf32>"))


def test_many_known_updates_of_one_place() -> None:
    g = Graph()
    x, i = g.argument(numbered(3, 2)), g.constant(np.zeros((40, 1), np.int32))
    g.check(g("TensorScatterAdd", x, i, g.argument(numbered(40, 2))))


def test_booleans_that_share_a_place_are_true_if_one_is() -> None:
    g = Graph()
    i, updates = g.argument(np.array([[0], [0], [2], [3]], np.int32)), g.argument(np.array([False, True, False, True]))
    g.check(g("ScatterNd", i, updates, g.integers(5), result="tensor<*xi1>"))


def test_rows_that_no_update_names_stay_as_they_are() -> None:
    g = Graph()
    x = g.argument(np.float32([[-0.0, np.nan], [np.inf, 1], [2, -np.inf]]))
    i, updates = g.argument(np.array([[1]], np.int32)), g.argument(np.float32([[-np.inf, 2]]))
    found = g.check(*(g(f"TensorScatter{name}", x, i, updates) for name in ("Add", "Max", "Min")))
    assert all(np.signbit(f[0, 0]) for f in found)


@pytest.mark.parametrize("dtype", COMBINED)
@pytest.mark.parametrize("known", [False, True])
def test_sums_of_segments(dtype: str, known: bool) -> None:
    g = Graph()
    x, segments = g.argument(numbered(2, 3, 4, dtype=dtype)), np.array([[2, -1, 0], [2, 0, 2]], np.int32)
    given = g.constant(segments) if known else g.argument(segments)
    g.check(*(g(f"UnsortedSegment{name}", x, given, g.constant(np.int32(4))) for name in ("Sum", "Prod", "Max", "Min")))


@pytest.mark.parametrize("dtype", COMBINED)
def test_segments_that_follow_each_other(dtype: str) -> None:
    """One of them has no parts."""
    g = Graph()
    x, segments = g.argument(numbered(6, 2, dtype=dtype)), g.integers(0, 0, 1, 3, 3, 3)
    kinds = ("Sum", "Prod", "Max", "Min", *(["Mean"] if dtype.startswith("float") else []))
    g.check(*(g(f"Segment{name}", x, segments) for name in kinds))


@pytest.mark.parametrize("shape", [(7,), (3, 5)])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_numbers_are_counted_or_weighed(shape: tuple[int, ...], dtype: str) -> None:
    """A number that is not below the size counts nowhere."""
    g = Graph()
    x, size = g.argument(indices(3, 6, *shape)), g.constant(np.int32(4))
    none, weights = g.constant(np.zeros(0, dtype)), g.argument(numbered(*shape, dtype=dtype))
    g.check(g("DenseBincount", x, size, none, binary_output="false", result=of_any_shape(dtype)),
            g("DenseBincount", x, size, none, binary_output="true", result=of_any_shape(dtype)),
            g("DenseBincount", x, size, weights, binary_output="false", result=of_any_shape(dtype)))


@pytest.mark.parametrize(("along", "batch"), [(1, 0), (0, 1), (2, 0), (1, 2)])
def test_sequences_in_reverse(along: int, batch: int) -> None:
    g = Graph()
    x = g.argument(numbered(3, 4, 5))
    lengths = np.random.default_rng(0).integers(0, (3, 4, 5)[along] + 1, (3, 4, 5)[batch])
    g.check(*(g("ReverseSequence", x, g.argument(lengths.astype(dtype)), seq_dim=along, batch_dim=batch)
              for dtype in (np.int32, np.int64)))


# ---- one hot ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_one_hot_along_any_axis(axis: int, dtype: str) -> None:
    g = Graph()
    i = g.argument(np.array([[0, 3, 1], [4, 2, 9]], dtype))
    on, off = g.argument(np.float32(2.5)), g.constant(np.float32(-1))
    g.check(g("OneHot", i, g.constant(np.int32(5)), on, off, axis=axis, result="tensor<*xf32>"))


def test_one_hot_of_what_is_out_of_range_is_cold() -> None:
    g = Graph()
    one, zero = g.constant(np.int32(1)), g.constant(np.int32(0))
    g.check(g("OneHot", g.argument(np.array([-1, 3, 2])), g.constant(np.int32(3)), one, zero, axis=-1, result="tensor<*xi32>"))


# ---- of shapes and constants -----------------------------------------------------------------------------------------
def test_ranges_and_sequences() -> None:
    g = Graph()

    def scalars(*numbers: Any, dtype: Any) -> list[Any]:
        return [g.constant(np.array(n, dtype)) for n in numbers]
    i32 = "tensor<*xi32>"
    x = g.argument(numbered(7))
    found = [g("Range", *scalars(*r, dtype=np.int32)) for r in ((0, 7, 1), (10, -3, -4), (1, 8, 3))]
    found += [g("Range", *scalars(*r, dtype=np.float32)) for r in ((0.1, 30, 0.1), (3, 1, -0.3))]
    found += [g("LinSpace", *scalars(0.1, 3.7, dtype=np.float32), g.constant(np.int32(n))) for n in (1, 2, 11)]
    found += [g("InvertPermutation", g.integers(2, 0, 3, 1)), g("BroadcastArgs", g.integers(3, 1), g.integers(2, 1, 4)),
              g("Where", g.constant(np.array([[True, False], [True, True]])), result="tensor<*xi64>"),
              *g("ConcatOffset", g.constant(np.int32(-1)), g.integers(2, 3), g.integers(2, 5), result=[i32, i32])]
    g.check(*found, g("GatherV2", x, found[0], g.constant(np.int32(0)), batch_dims=0))


def test_axes_of_broadcasts() -> None:
    g = Graph()
    i32 = "tensor<*xi32>"
    pairs = (((2, 1), (2, 3)), ((3,), (2, 3)), ((1, 3), (1, 1)), ((1, 2), (2,)), ((1, 1, 4), (1, 4)))
    found = [v for a, b in pairs for v in g("BroadcastGradientArgs", g.integers(*a), g.integers(*b), result=[i32, i32])]
    end = g.constant(np.int32(0))
    g.check(g("ConcatV2", *found, end))


def test_what_is_filled() -> None:
    g = Graph()
    value = g.argument(np.int8(3))
    many, empty = g.constant(np.array([2000, 300])), g.constant(np.zeros(0, np.int32))
    g.check(g("Fill", g.integers(2, 3), value, result="tensor<*xi8>"), g("Fill", empty, value, result="tensor<*xi8>"),
            g("Fill", many, g.argument(np.float32(2)), result="tensor<*xf32>"))


# ---- diagonals -------------------------------------------------------------------------------------------------------
DIAGONALS = [(rows, columns, dtype) for i, (rows, columns) in enumerate(((4, 4), (3, 5), (5, 2)))
             for j, dtype in enumerate(("int32", "float32", "float64", "uint8", "bool")) if (i + j) % 2 == 0]


@pytest.mark.parametrize(("rows", "columns", "dtype"), DIAGONALS)
def test_diagonals(rows: int, columns: int, dtype: str) -> None:
    g = Graph()
    x, zero = g.argument(numbered(2, rows, columns, dtype=dtype)), g.constant(np.array(0, dtype))
    found = [g("MatrixDiagPart", x)]
    for k in (0, 1, -2):
        at = g.constant(np.int32(k))
        part = g("MatrixDiagPartV3", x, at, zero, align='"RIGHT_LEFT"')
        filled = g.constant(np.array(1, dtype))
        found += [part, g("MatrixDiagV3", part, at, g.constant(np.int32(rows)), g.constant(np.int32(columns)), filled,
                          align='"RIGHT_LEFT"'), g("MatrixSetDiagV3", x, part, at, align='"RIGHT_LEFT"')]
    one, five, six, rest = (g.constant(np.int32(n)) for n in (1, 5, 6, -1))
    found += [g("MatrixDiagV3", found[0], *numbers, zero, align='"RIGHT_LEFT"') for numbers in (
        (rest, rest, rest), (one, rest, rest), (rest, rest, six), (one, five, rest))]
    g.check(*found, g("MatrixDiag", found[0]))


def test_diagonals_of_tensors() -> None:
    g = Graph()
    x = g.argument(numbered(2, 3))
    square = g("Diag", x)
    g.check(square, g("DiagPart", square))


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "uint8", "bool"])
def test_bands(dtype: str) -> None:
    g = Graph()
    x = g.argument(numbered(2, 4, 5, dtype=dtype))
    g.check(*(g("MatrixBandPart", x, g.constant(np.int64(a)), g.constant(np.int64(b))) for a, b in (
        (0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (2, -1))))


# ---- refused ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("Unique", lambda g: [g.argument(numbered(4))], "how many elements tf.Unique gives depends on the data"),
    ("Where", lambda g: [g.argument(numbered(4))], "how many elements tf.Where gives depends on the data"),
    ("Range", lambda g: [g.constant(np.int32(0)), g.argument(np.int32(3)), g.constant(np.int32(1))],
     "the limit of a range must be known when compiling"),
    ("GatherV2", lambda g: [g.argument(numbered(4, 3)), g.integers(0), g.argument(np.int32(0))], "the axis must be known"),
    ("OneHot", lambda g: [g.integers(0), g.argument(np.int32(3)), g.constant(np.int32(1)), g.constant(np.int32(0))],
     "the depth must be known when compiling"),
    ("ScatterNd", lambda g: [g.argument(np.int32([[0]])), g.argument(numbered(1)), g.argument(np.int32([4]))],
     "the shape must be known when compiling"),
    ("TensorScatterUpdate", lambda g: [g.argument(numbered(3, 2)), g.argument(np.int32([[0]])), g.argument(numbered(1, 3))],
     r"the updates are tensor<1x3xf32>, but")])
def test_what_cannot_be_compiled_is_refused_with_the_reason(name: str, arguments: Any, message: str) -> None:
    g = Graph()
    axis = {"batch_dims": 0} if name == "GatherV2" else {"axis": -1} if name == "OneHot" else {}
    result = g(name, *arguments(g), **axis, result="tensor<*xf32>" if name != "Where" else "tensor<*xi64>")
    with pytest.raises(Problem, match=message) as caught:
        g.tosa(result)
    assert caught.value.position is not None
