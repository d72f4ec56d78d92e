"""Gather and scatter beside ONNX Runtime, with indices that are known when compiling and with those that are not."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from tosaic.lowering.rewrite.onnx.translate import to_tosa

from .models import agree, one_node
from .test_layout import TYPES, ints, numbers

Array = Any
KNOWN = pytest.mark.parametrize("known", [False, True], ids=["at run time", "known"])


def places(low: int, high: int, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).integers(low, high, shape)


def holds(op: str, inputs: list[Any], opset: int, known: bool = False, **attributes: Any) -> None:
    """A node gives what ONNX Runtime gives; its second input is a constant where it is `known`."""
    model = one_node(op, inputs, attributes, opset, constants=[1] if known else [])
    agree(model, [x for n, x in enumerate(inputs) if n != 1 or not known])


# ---- gather --------------------------------------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@KNOWN
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_every_type_are_gathered(dtype: str, known: bool) -> None:
    x = numbers(3, 4, 5, dtype=dtype)
    holds("Gather", [x, ints(0, -1, 2).astype(np.int32)], 13, known, axis=1)
    holds("GatherElements", [x, places(-4, 4, 3, 2, 5)], 13, known, axis=1)
    holds("GatherElements", [x, places(-3, 3, 2, 3, 2)], 13, known, axis=0)
    holds("GatherND", [x, places(-3, 3, 6, 2)], 13, known)
    holds("GatherND", [x, places(-4, 4, 3, 2, 2)], 13, known, batch_dims=1)


def test_gathers_of_many_axes_and_of_none() -> None:
    x = numbers(2, 1, 2, 2, 2, 2, 4)
    holds("Gather", [x, places(0, 4, 2, 2)], 13, axis=-1)
    holds("Gather", [numbers(3, 4), np.array(-2)], 11, axis=-1)
    holds("GatherElements", [x, places(0, 2, 2, 1, 2, 2, 2, 2, 4)], 13, axis=2)
    holds("GatherND", [numbers(2, 3, 4, 5, 2), places(0, 2, 2, 3, 6, 2)], 13, batch_dims=2)


def test_features_are_extracted() -> None:
    for shape in ((5,), (2, 3)):
        arrays = [numbers(*shape), ints(2, 0, 1)]
        agree(one_node("ArrayFeatureExtractor", arrays, {}, 18, domain="ai.onnx.ml"), arrays)


# ---- scatter -------------------------------------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@KNOWN
@pytest.mark.parametrize("dtype", TYPES)
def test_updates_of_every_type_are_written(dtype: str, known: bool) -> None:
    x, new = numbers(3, 4, dtype=dtype), numbers(3, 3, dtype=dtype, seed=1)
    holds("ScatterElements", [x, ints(0, -1, 2, 1, 2, 0, 3, 1, 2).reshape(3, 3), new], 18, known, axis=1)
    holds("ScatterND", [x, ints(0, -1).reshape(2, 1), numbers(2, 4, dtype=dtype)], 18, known)
    holds("ScatterND", [x, ints(0, 1, -1, 2).reshape(2, 2), numbers(2, dtype=dtype)], 18, known)


COMBINED = [(dtype, reduction, known) for i, dtype in enumerate(t for t in TYPES if t not in ("bool", "float16"))
            for j, reduction in enumerate(("add", "mul", "max", "min")) for known in (False, True) if (i + j + known) % 2 == 0]
"""Half of all, among them every reduction of every type."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "reduction", "known"), COMBINED)
def test_updates_that_share_a_place_are_combined(dtype: str, reduction: str, known: bool) -> None:
    x = numbers(3, 4, dtype=dtype)
    holds("ScatterElements", [x, places(-4, 4, 2, 5), numbers(2, 5, dtype=dtype)], 18, known, axis=1, reduction=reduction)
    both = np.stack([places(-3, 3, 8), places(-4, 4, 8, seed=1)], 1)
    holds("ScatterND", [x, both, numbers(8, dtype=dtype)], 18, known, reduction=reduction)
    holds("ScatterND", [x, places(-3, 3, 7, 1), numbers(7, 4, dtype=dtype)], 18, known, reduction=reduction)


@KNOWN
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_floats_are_rounded_once(dtype: str, known: bool) -> None:
    import ml_dtypes
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x, index, new = np.ones(2).astype(kind), np.zeros(64, np.int64), np.full(64, 2.0**-9).astype(kind)
    model = one_node("ScatterElements", [x, index, new], {"reduction": "add"}, 18, constants=[1] if known else [])
    agree(model, [x, new] if known else [x, index, new], [np.array([1.125, 1]).astype(kind)])


@KNOWN
def test_the_last_of_updates_of_one_place_stays(known: bool) -> None:
    holds("ScatterElements", [numbers(3), ints(1, 1, 1), numbers(3, seed=1)], 16, known)
    holds("ScatterND", [numbers(3), ints(1, 1, 1).reshape(3, 1), numbers(3, seed=1)], 16, known)


@KNOWN
def test_updates_of_some_lines(known: bool) -> None:
    holds("ScatterElements", [numbers(3, 4, 2), places(-4, 4, 2, 1, 2), numbers(2, 1, 2)], 11, known, axis=1)
    holds("ScatterElements", [numbers(3, 4, 2), places(-2, 2, 2, 3, 1), numbers(2, 3, 1)], 18, known, axis=-1, reduction="add")
    x, index = numbers(2, 3, 1, 2, 2, 2, 2), places(0, 3, 2, 2, 1, 2, 1, 2, 2)
    holds("ScatterElements", [x, index, numbers(*index.shape)], 18, known, axis=1, reduction="add")


def test_many_updates_of_a_place_that_is_known() -> None:
    holds("ScatterND", [numbers(2), np.zeros((40, 1), np.int64), numbers(40)], 18, True, reduction="add")


def test_a_scatter_of_known_places_has_no_comparisons() -> None:
    x, index, new = numbers(2, 6, 4), ints(0, 0, 0, 1, 1, 0, 1, 1).reshape(4, 2), numbers(4, 4)
    model = tosaic.from_onnx(one_node("ScatterND", [x, index, new], {}, 18, constants=[1]))
    names = {operation.op.name for operation in to_tosa(model.module, "main").function("main").body.operations}
    assert "tosa.concat" in names and not names & {"tosa.scatter", "tosa.equal", "tosa.gather"}


@pytest.mark.parametrize(("mode", "count", "start"), [("linear", 2, (4, 1)), ("circular", 3, (4, 5)), ("linear", 2, None)])
def test_caches_are_written(mode: str, count: int, start: tuple[int, int] | None) -> None:
    past, new = numbers(2, 3, 6, 2), numbers(2, 3, count, 2)
    arrays = [past, new, *([] if start is None else [ints(*start)])]
    wanted = past.copy()
    for batch, first in enumerate(start or (0, 0)):
        for k in range(count):
            wanted[batch, :, (first + k) % 6] = new[batch, :, k]
    agree(one_node("TensorScatter", arrays, {"axis": -2, "mode": mode}, 24), arrays, [wanted])


# ---- by a condition, or an index -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int64", "float32", "int32"])
def test_one_hot(dtype: str, axis: int) -> None:
    index, values = np.array([[0, -1], [7, -9]]).astype(dtype), np.float32([-2, 3])
    agree(one_node("OneHot", [index, np.array(5, dtype), values], {"axis": axis}, 11, constants=[1]), [index, values])


def test_fractions_of_a_one_hot_index_are_dropped() -> None:
    index, values = np.float32([1.7, -0.3, -1.2]), np.float32([0, 1])
    agree(one_node("OneHot", [index, np.float32(4), values], {}, 11, constants=[1]), [index, values])


@pytest.mark.parametrize("axis", [None, 1])
def test_a_known_condition_compresses(axis: int | None) -> None:
    condition = np.array([True, False, True])
    attributes = {} if axis is None else {"axis": axis}
    x = numbers(3, 4)
    agree(one_node("Compress", [x, condition], attributes, 11, constants=[1]), [x])


@pytest.mark.parametrize(("op", "inputs", "remedy"), [
    ("NonZero", [numbers(3)], "mask"), ("Unique", [numbers(3)], "outside"),
    ("Compress", [numbers(3), np.ones(3, bool)], "constant")])
def test_a_shape_that_depends_on_data_is_refused_with_the_reason(op: str, inputs: list[Any], remedy: str) -> None:
    model = tosaic.from_onnx(one_node(op, inputs, {}, 13))
    with pytest.raises(tosaic.Problem, match="depends on data") as caught:
        model.main.compile()
    assert remedy in str(caught.value)
