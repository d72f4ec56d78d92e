"""Operators that move elements, put tensors together and take them apart, beside ONNX Runtime: types, versions, ranks."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import helper, numpy_helper

from .models import agree, one_node

Array = Any
TYPES = ("bool", "uint8", "uint64", "int8", "int32", "int64", "float16", "float32", "float64")


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Numbers of a type, the greatest and the least among them."""
    generator = np.random.default_rng((seed, *shape))
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return np.asarray(generator.standard_normal(shape)).astype(dtype)
    bounds = np.iinfo(dtype)
    return np.asarray(generator.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True))


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def holds(op: str, inputs: Sequence[Any], opset: int, outputs: int = 1, **attributes: Any) -> None:
    """A node whose inputs but the first are constants gives what ONNX Runtime gives."""
    model = one_node(op, inputs, attributes, opset, outputs=outputs, constants=range(1, len(inputs)))
    agree(model, inputs[:1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_every_type_move(dtype: str) -> None:
    x = numbers(3, 4, 5, dtype=dtype)
    holds("Reshape", [x, ints(5, -1)], 14)
    holds("Transpose", [x], 13, perm=[2, 0, 1])
    holds("Split", [x, ints(1, 3)], 13, outputs=2, axis=-2)
    holds("Slice", [x, ints(-1, 1), ints(-1000, 100), ints(1, 2), ints(-2, 2)], 13)
    holds("Expand", [np.ascontiguousarray(x[:, :1]), ints(2, 1, 3, 1)], 13)
    holds("Tile", [x, ints(2, 1, 3)], 13)
    holds("CenterCropPad", [x, ints(2, 8)], 18, axes=[-1, 1])
    agree(one_node("Concat", [x, x[:, :1].copy()], {"axis": 1}, 13), [x, x[:, :1].copy()])
    lengths = ints(1, 3, 0, 2)
    agree(one_node("ReverseSequence", [x, lengths], {"batch_axis": 1, "time_axis": 0}, 10), [x, lengths])


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_floats_that_onnx_runtime_does_not_move(name: str) -> None:
    import ml_dtypes
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = np.arange(240, dtype=np.uint8).view(np.uint8 if dtype.itemsize == 1 else np.uint16).view(dtype).reshape(4, -1)
    mask = np.arange(x.size).reshape(x.shape) % 3 == 0
    agree(one_node("Transpose", [x], {}, 25), [x], [x.T])
    agree(one_node("Concat", [x, x[::-1].copy()], {"axis": 1}, 25), [x, x[::-1].copy()], [np.concatenate([x, x[::-1]], 1)])
    agree(one_node("Slice", [x, ints(3), ints(0), ints(0), ints(-1)], {}, 25, constants=[1, 2, 3, 4]), [x], [x[3:0:-1]])
    agree(one_node("Pad", [x, ints(1, 0, 0, 2)], {"mode": "edge"}, 25, constants=[1]), [x], [x[[0, 0, 1, 2, 3]][:, [
        *range(x.shape[1]), -1, -1]]])
    agree(one_node("Gather", [x, ints(2, -1)], {}, 25), [x, ints(2, -1)], [x[[2, -1]]])
    agree(one_node("Where", [mask, x, x[::-1].copy()], {}, 25), [mask, x, x[::-1].copy()], [np.where(mask, x, x[::-1])])
    written, arrays = x.copy(), [x, ints(2, 0).reshape(2, 1), x[:2].copy()]
    written[[2, 0]] = x[:2]
    agree(one_node("ScatterND", arrays, {}, 25), arrays, [written])


BORDERS = [(mode, dtype) for i, mode in enumerate(("constant", "reflect", "edge", "wrap")) for j, dtype in enumerate(TYPES)
           if mode == "constant" or (i + j) % 3 == 0]
"""Constants of every type, each other mode with every third."""


@pytest.mark.parametrize(("mode", "dtype"), BORDERS)
def test_borders_of_every_type(dtype: str, mode: str) -> None:
    holds("Pad", [numbers(3, 4, 5, dtype=dtype), ints(0, 1, -1, 2, 0, 3)], 19, mode=mode)
    if mode == "constant":
        holds("Pad", [numbers(3, 4, dtype=dtype), ints(1, 0, 0, 2), numbers(dtype=dtype)], 13)


@pytest.mark.parametrize("pads", [(0, 3, 0, 3), (0, -1, 0, 3), (0, 3, 0, -1), (-1, 0, -2, 0), (0, 5, 0, 0)])
@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_borders_that_crop_and_repeat(pads: tuple[int, ...], mode: str) -> None:
    holds("Pad", [numbers(4, 4), ints(*pads)], 19, mode=mode)


def test_borders_of_older_versions_and_of_some_axes() -> None:
    x = numbers(3, 4, 5)
    holds("Pad", [x], 7, pads=[0, 1, 2, 1, 0, 1], value=2.5)
    holds("Pad", [x], 9, pads=[0, -1, 2, 1, 0, -1], mode="edge")
    holds("Pad", [x, ints(0, 1, 2, 1, 0, 1), np.float32([3])], 11)
    holds("Pad", [x, ints(2, 3), None, ints(-2)], 18, mode="reflect")


@pytest.mark.parametrize(("start", "end", "step"), [
    (0, -1, 1), (-1, -10, -1), (-1, 0, -1), (5, 1, -2), (100, -100, -3), (-100, 100, 3), (3, -1, -1), (-2, 2**63 - 1, 1),
    (-1, -2**63, -1), (-1, -2**31, -1), (2**63 - 1, -2**63, -1)])
def test_slices_count_from_both_ends(start: int, end: int, step: int) -> None:
    x = numbers(6, 2)
    holds("Slice", [x, ints(start), ints(end), ints(0), ints(step)], 13)


def test_attributes_of_older_versions() -> None:
    x = numbers(3, 4, 5)
    holds("Slice", [x], 7, starts=[1, -3], ends=[3, 100], axes=[0, 2])
    holds("Slice", [x], 9, starts=[1, -3], ends=[3, -1])
    holds("Slice", [x, ints(0), ints(-1), ints(2), ints(2)], 10)
    holds("Flatten", [x], 9, axis=2)
    holds("Flatten", [x], 11, axis=-1)
    for axes, opset in (([0], 7), ([-1], 11)):
        holds("Squeeze", [numbers(1, 3, 1)], opset, axes=axes)
    holds("Squeeze", [numbers(1, 3, 1)], 11)
    for given in ([ints(0, -1)], [ints()], []):
        holds("Squeeze", [numbers(1, 3, 1), *given], 13)
    holds("Unsqueeze", [numbers(3)], 7, axes=[0, 2])
    holds("Unsqueeze", [numbers(3), ints(-1, 0)], 13)
    holds("Split", [numbers(2, 6)], 11, outputs=2, axis=1, split=[2, 4])
    holds("Split", [numbers(2, 6)], 13, outputs=3, axis=-1)
    holds("Split", [numbers(2, 7)], 18, outputs=3, axis=-1, num_outputs=3)


# ---- where a slice begins is not known ------------------------------------------------------------------------------------
def moving(nodes: Sequence[Any], arrays: dict[str, Any], constants: dict[str, Any]) -> Any:
    """A model of nodes that give `y`."""
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in arrays.items()]
    tensors = [numpy_helper.from_array(a, k) for k, a in constants.items()]
    graph = helper.make_graph(list(nodes), "moving", infos, [helper.make_empty_tensor_value_info("y")], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_slice_of_known_length_begins_anywhere() -> None:
    x, node = numbers(6, 4, 5), helper.make_node
    nodes = [node("Add", ["i", "c"], ["j"]), node("Slice", ["x", "i", "j"], ["y"])]
    model = moving(nodes, {"x": x, "i": ints(3, 1, 2)}, {"c": ints(2, 3, 1)})
    for starts in (ints(3, 1, 2), ints(0, 0, 4), ints(4, 1, 0)):
        agree(model, [x, starts])
    with pytest.raises(tosaic.Problem, match="a slice of 2 elements begins outside of axis 0, which has 6"):
        tosaic.from_onnx(model)(x, ints(5, 0, 0))
    nodes = [node("Add", ["i", "c"], ["j"]), node("Concat", ["i", "low"], ["starts"], axis=0),
             node("Concat", ["j", "high"], ["ends"], axis=0), node("Slice", ["x", "starts", "ends", "a", "s"], ["y"])]
    model = moving(nodes, {"x": x, "i": ints(3)}, {"c": ints(2), "low": ints(-2, 4), "high": ints(2**62, 0), "a": ints(0, 1, 2),
                                                   "s": ints(1, 1, -2)})
    agree(model, [x, ints(3)])
    nodes = [node("Cast", ["n"], ["k"], to=7), node("Unsqueeze", ["k", "z"], ["i"]), node("Add", ["k", "c"], ["m"]),
             node("Unsqueeze", ["m", "z"], ["j"]), node("Slice", ["x", "i", "j", "a"], ["y"])]
    arrays = {"x": x, "n": np.array(2, np.int32)}
    agree(moving(nodes, arrays, {"c": np.array(2), "z": ints(0), "a": ints(-1)}), list(arrays.values()))


def test_no_code_is_made_for_a_slice_whose_length_is_not_known() -> None:
    x = numbers(6, 4)
    model = tosaic.from_onnx(one_node("Slice", [x, ints(0), ints(2)], {}, 13))
    with pytest.raises(tosaic.Problem, match="how many elements a slice has must be known"):
        model.main.compile()
    np.testing.assert_array_equal(model(x, ints(0), ints(2)), x[:2])


@pytest.mark.parametrize(("op", "step"), [("Add", 2), ("Sub", -3)])
def test_a_range_of_known_length_begins_anywhere(op: str, step: int) -> None:
    nodes = [helper.make_node(op, ["i", "c"], ["j"]), helper.make_node("Range", ["i", "j", "s"], ["y"])]
    agree(moving(nodes, {"i": np.array(3)}, {"c": np.array(7), "s": np.array(step)}), [np.array(3)])


# ---- more operators ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", [-2, 0, 1, 9])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_triangles(dtype: str, upper: int, k: int) -> None:
    holds("Trilu", [numbers(2, 4, 5, dtype=dtype), np.array(k)], 14, upper=upper)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_becomes_space(mode: str) -> None:
    holds("DepthToSpace", [numbers(2, 12, 2, 3)], 13, blocksize=2, mode=mode)
    if mode == "DCR":
        holds("SpaceToDepth", [numbers(2, 3, 4, 6)], 13, blocksize=2)


def test_more_axes_than_the_operators_of_tosa_have() -> None:
    x = numbers(2, 1, 2, 2, 2, 2, 4)
    holds("Transpose", [numbers(2, 1, 2, 2, 2, 2, 2, 3)], 13, perm=[6, 0, 5, 1, 7, 4, 2, 3])
    holds("Slice", [x, ints(3, 1), ints(0, 2), ints(-1, 0), ints(-2, 1)], 13)
    holds("Reshape", [x, ints(8, -1)], 13)
    holds("Expand", [numbers(2, 1, 2, 2, 1, 2, 4), ints(2, 3, 2, 2, 3, 2, 4)], 13)
    holds("Tile", [x, ints(1, 2, 1, 1, 2, 1, 1)], 13)
    holds("Pad", [x, ints(*[0, 1, 0, 0, 1, 0, 0] * 2)], 13, mode="edge")
    holds("Trilu", [x], 14)
    agree(one_node("Concat", [x, x], {"axis": 2}, 13), [x, x])


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), [
    ("Reshape", [numbers(2, 3), ints(4, 2)], {}, "cannot be reshaped"),
    ("Transpose", [numbers(2, 3)], {"perm": [0, 0]}, "no order of 2 axes"),
    ("Split", [numbers(2, 3), ints(1, 1)], {"axis": 1}, "no parts of 3"),
    ("Slice", [numbers(4), ints(0), ints(3), ints(0), ints(0)], {}, "a step is 0"),
    ("Pad", [numbers(4), ints(1)], {}, "no border of 1 axes"),
    ("Squeeze", [numbers(2, 3), ints(0)], {}, "not all 1"),
    ("Unsqueeze", [numbers(2), ints(0, 0)], {}, "stands twice")])
def test_what_does_not_fit_is_a_problem(op: str, inputs: list[Any], attributes: dict[str, Any], message: str) -> None:
    model = tosaic.from_onnx(one_node(op, inputs, attributes, 13, constants=range(1, len(inputs))))
    with pytest.raises(tosaic.Problem, match=message):
        model(inputs[0])
