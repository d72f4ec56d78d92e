"""`from_onnx(shapes=, values=, state=)`: every combination gives static inputs and the numbers of a loop by hand."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
from onnx import TensorProto, helper  # noqa: E402

BATCH, WIDTH = 3, 4
RATE = np.array(16000, np.int64)
SHAPES: dict[str, Any] = {
    "all": {"x": (BATCH, WIDTH), "h": (2, BATCH, WIDTH), "rate": ()},
    "open ones": {"x": (BATCH, WIDTH), "h": (2, BATCH, WIDTH)},
    "one of them": {"x": (BATCH, WIDTH)},
    "extent": {"batch": BATCH},
    "none": {},
}


def recurrent() -> Any:
    """hn = h + x * (rate / 16000), y = sum of hn: an input, a state and a parameter of a stream."""
    value, F, I = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT64
    nodes = [helper.make_node("Cast", ["rate"], ["float"], to=F),
             helper.make_node("Constant", [], ["unit"], value_float=16000.0),
             helper.make_node("Div", ["float", "unit"], ["gain"]),
             helper.make_node("Mul", ["x", "gain"], ["scaled"]),
             helper.make_node("Add", ["h", "scaled"], ["hn"]),
             helper.make_node("ReduceSum", ["hn"], ["y"], keepdims=0)]
    graph = helper.make_graph(nodes, "stream", [value("x", F, ["batch", WIDTH]), value("rate", I, []),
                                                value("h", F, [2, "batch", WIDTH])],
                              [value("y", F, []), value("hn", F, [2, "batch", WIDTH])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("given", "has_values", "has_state"), list(itertools.product(SHAPES, (False, True), (False, True))))
def test_every_combination_is_static_and_right(given: str, has_values: bool, has_state: bool) -> None:
    options: dict[str, Any] = {"shapes": SHAPES[given]}
    if has_values:
        options["values"] = {"rate": RATE}
    if has_state:
        options["state"] = {"h": "hn"}
    model = tosaic.from_onnx(recurrent(), **options, context=tosaic.Context(f"{given} {has_values} {has_state}"))
    names = ["x", *(["rate"] if not has_values else []), *(["h"] if not has_state else [])]
    h = np.zeros((2, BATCH, WIDTH), np.float32)
    for x in np.random.default_rng(0).standard_normal((3, BATCH, WIDTH)).astype(np.float32):
        found = model({n: {"x": x, "rate": RATE, "h": h}[n] for n in names})
        h = h + x
        y = found if has_state else found[0]
        np.testing.assert_allclose(y, h.sum(), rtol=1e-5, atol=1e-5)
        if not has_state:
            np.testing.assert_allclose(found[1], h, rtol=1e-6, atol=1e-6)
    if given != "none":
        assert [t.name for t in model.main.inputs] == names
        assert all(None not in t.shape for t in (*model.main.inputs, *model.main.outputs)), model.main.inputs
        assert [str(v) for v in model.main.variables] == (["h: tensor<2x3x4xf32>"] if has_state else [])
