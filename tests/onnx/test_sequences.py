"""Sequences and optional values whose lengths are known, beside ONNX Runtime."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import ModelProto, helper, numpy_helper

from .models import agree
from .test_layout import ints, numbers

NODE = helper.make_node
X, Y = numbers(2, 3), numbers(4, 3)
JOINED = NODE("SequenceConstruct", ["x", "y", "x"], ["s"])


def model(nodes: Sequence[Any], arrays: dict[str, Any], results: Sequence[str], constants: dict[str, Any]) -> ModelProto:
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in arrays.items()]
    tensors = [numpy_helper.from_array(np.asarray(a), k) for k, a in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", infos, [helper.make_empty_tensor_value_info(r) for r in results], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def holds(nodes: Sequence[Any], results: Sequence[str], arrays: dict[str, Any] | None = None, **constants: Any) -> None:
    given = {"x": X, "y": Y} if arrays is None else arrays
    agree(model(nodes, given, results, constants), list(given.values()))


@pytest.mark.parametrize("place", [0, 1, -1, -3, 3])
def test_a_tensor_is_put_into_a_sequence(place: int) -> None:
    holds([JOINED, NODE("SequenceInsert", ["s", "y", "p"], ["t"]), NODE("SequenceAt", ["t", "q"], ["a"]),
           NODE("SequenceLength", ["t"], ["b"]), NODE("ConcatFromSequence", ["t"], ["c"], axis=0)], ["a", "b", "c"],
          p=np.array(place), q=np.array(-2))


@pytest.mark.parametrize("place", [0, 1, -1, -3, None])
def test_a_tensor_is_taken_out_of_a_sequence(place: int | None) -> None:
    own = {} if place is None else {"p": np.array(place)}
    holds([JOINED, NODE("SequenceErase", ["s", *own], ["t"]), NODE("ConcatFromSequence", ["t"], ["c"], axis=-2)], ["c"], **own)


def test_an_empty_sequence_is_filled() -> None:
    filled = [NODE("SequenceInsert", ["s", "x"], ["t"]), NODE("SequenceInsert", ["t", "y"], ["u"])]
    holds([NODE("SequenceEmpty", [], ["s"]), *filled, NODE("ConcatFromSequence", ["u"], ["c"], axis=0)], ["c"])


def test_a_sequence_becomes_a_new_axis() -> None:
    holds([NODE("SequenceConstruct", ["x", "x"], ["s"]), NODE("ConcatFromSequence", ["s"], ["c"], axis=-1, new_axis=1),
           NODE("ConcatFromSequence", ["s"], ["d"], axis=0, new_axis=1)], ["c", "d"], {"x": X})


@pytest.mark.parametrize(("split", "keep"), [(np.array(2), 1), (ints(1, 3), 1), (np.array(3), 1), (None, 0), (None, 1)])
def test_a_tensor_is_split_into_a_sequence(split: Any, keep: int) -> None:
    own = {} if split is None else {"p": split}
    holds([NODE("SplitToSequence", ["y", *own], ["s"], axis=0, keepdims=keep), NODE("SequenceAt", ["s", "z"], ["a"]),
           NODE("SequenceAt", ["s", "o"], ["b"]), NODE("SequenceLength", ["s"], ["n"])], ["a", "b", "n"], {"y": Y},
          z=np.array(0), o=np.array(-1), **own)


def test_a_subgraph_for_each_tensor() -> None:
    open_tensors = [helper.make_tensor_value_info(name, 1, None) for name in ("e", "f", "o1", "o2")]
    body = helper.make_graph([NODE("Mul", ["e", "w"], ["o1"]), NODE("Add", ["e", "f"], ["o2"])], "body", open_tensors[:2],
                             open_tensors[2:])
    arrays = {"x": X, "y": Y, "w": numbers(1, 3)}
    ends = [NODE("ConcatFromSequence", ["t"], ["c"], axis=0), NODE("ConcatFromSequence", ["u"], ["d"], axis=0)]
    holds([JOINED, NODE("SequenceMap", ["s", "w"], ["t", "u"], body=body), *ends], ["c", "d"], arrays)


def test_a_place_that_is_not_known_needs_tensors_of_one_type() -> None:
    at = NODE("SequenceAt", ["s", "z"], ["a"])
    for place in (1, -2):
        holds([NODE("SequenceConstruct", ["x", "w"], ["s"]), at], ["a"], {"x": X, "w": -X, "z": np.array(place)})
    refused = tosaic.from_onnx(model([JOINED, at], {"x": X, "y": Y, "z": np.array(0)}, ["a"], {}))
    with pytest.raises(tosaic.Problem, match="which element of a sequence it is depends on data"):
        refused.main.compile()
    np.testing.assert_array_equal(refused(X, Y, np.array(0)), X)


def test_a_place_outside_of_a_sequence_is_a_problem() -> None:
    at = NODE("SequenceAt", ["s", "z"], ["a"])
    wrong = tosaic.from_onnx(model([JOINED, at], {"x": X, "y": Y}, ["a"], {"z": np.array(5)}))
    with pytest.raises(tosaic.Problem, match="place 5 is not one of a sequence of 3"):
        wrong(X, Y)


def test_optional_values() -> None:
    holds([NODE("Optional", ["x"], ["o"]), NODE("OptionalHasElement", ["o"], ["h"]), NODE("OptionalGetElement", ["o"], ["g"])],
          ["h", "g"], {"x": X})
