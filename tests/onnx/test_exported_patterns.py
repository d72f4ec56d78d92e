"""What exporters write, in graphs of a few nodes: patterns of the networks of `exports.py`. The judge is ONNX Runtime."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import TensorProto, helper, numpy_helper

from .models import agree

Array = np.ndarray
F = np.float32
node = helper.make_node
KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(F)


def model_of(nodes: Sequence[Any], tensors: Mapping[str, Array], inputs: Mapping[str, tuple[str, Sequence[Any]]],
             outputs: Sequence[Any], opset: int = 17, inner: Sequence[Any] = ()) -> Any:
    """A model of nodes; `inner` is what the file says of inner tensors."""
    graph = helper.make_graph(
        list(nodes), "net", [helper.make_tensor_value_info(n, KINDS[k], s) for n, (k, s) in inputs.items()],
        [o if not isinstance(o, str) else helper.make_empty_tensor_value_info(o) for o in outputs],
        [numpy_helper.from_array(v, k) for k, v in tensors.items()], value_info=list(inner))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
                             ir_version=10)


def test_extents_that_a_file_says_of_inner_tensors_are_no_condition() -> None:
    """PyTorch writes the extents of its example behind recurrent layers, though they are open."""
    say = helper.make_tensor_value_info
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["y"])]
    model = model_of(nodes, {}, {"x": ("float32", ["n", 4])}, [say("y", TensorProto.FLOAT, [4, 20])],
                     inner=[say("t", TensorProto.FLOAT, [4, 20])])
    agree(model, [random(20, 4)])
    agree(model, [random(30, 4)])


def test_element_types_that_a_file_says_are_conditions() -> None:
    model = model_of([node("Neg", ["x"], ["t"]), node("Relu", ["t"], ["y"])], {}, {"x": ("float32", [4])}, ["y"],
                     inner=[helper.make_tensor_value_info("t", TensorProto.INT32, [4])])
    with pytest.raises(tosaic.Problem, match="t is declared as tensor<4xi32>, for these inputs it is tensor<4xf32>"):
        tosaic.from_onnx(model)(random(4))
