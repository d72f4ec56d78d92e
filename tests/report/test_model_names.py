"""The report says what the model calls its tensors: .tflite, ONNX, TensorFlow's and MLIR's names, and which it is where two are
the same. What a name should be is read from the file by its own package."""
from __future__ import annotations

import math
import pathlib
import re

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.tools.report import Report
from tosaic.jit.tools.report.diff import diff
from tosaic.jit.tools.report.page import page
from tosaic.lowering.target.presets import target
from tosaic.lowering.text.location_name import location_name

from .subjects import DATA

NUMBER = re.compile(r"v?\d+")
LOCATED = """
func.func @main(%arg0: tensor<4x16xf32>) -> tensor<4x1xf32> {
  %0 = tosa.reduce_sum %arg0 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32> loc(#sum)
  %1 = tosa.reduce_max %arg0 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32> loc("model.py":3:1)
  %2 = tosa.reduce_min %arg0 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32> loc("net/same")
  %3 = tosa.reduce_product %arg0 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32> loc("net/same")
  %4 = tosa.add %0, %1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = tosa.add %2, %3 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = tosa.reduce_sum %4 {axis = 0 : i32} : (tensor<4x1xf32>) -> tensor<1x1xf32> loc("net/whole")
  %7 = tosa.add %6, %5 : (tensor<1x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %7 : tensor<4x1xf32>
}
#sum = loc(fused["Sum:", "net/sum@main"])
"""


def report_of(model: tosaic.Model, entry: str | None = None) -> Report:
    """Without tiles of rows, so that whole tensors are in memory."""
    return model.entry(entry).lower(tosaic.CompileOptions(target("cortex-m4"), rows="never")).report()


def base(label: str | None) -> str:
    """The name of a whole tensor that a label is about."""
    return re.sub(r"( \(%[^()]*\)|\.\w+)$", "", label or "")


def names_are_said(found: Report) -> None:
    """Text, page and comparison call each buffer and its kernel by their names."""
    text, html = str(found), page(found, "model")
    for b in (*found.buffers, *found.outputs):
        assert f"{b.called}: {b.type}" in text or f"{b.called} {b.type}" in text
    for b in found.buffers:
        assert f"{b.called}: {b.type}".replace('"', "&quot;") in html
    if found.peak is not None and found.peak.kernel is not None:
        label = found.kernels[found.peak.kernel].label
        assert label is None or f"of {label}" in text
    assert "added" not in str(diff(found, found))
    called = [b.called for b in found.buffers]
    assert len(set(called)) == len(called)


@pytest.mark.parametrize(("location", "name"), [
    ('loc("conv1/Relu")', "conv1/Relu"), ('loc("conv1"("m.py":1:2))', "conv1"), ('loc("m.py":1:2)', None),
    (None, None), ('loc(callsite("a" at "b"))', "a"), ('loc(fused["m.py":1:2, "a"])', "a"), ("loc(unknown)", None),
    ('loc(fused["MatMul:", "dense/MatMul@f"])', "dense/MatMul"), ('loc("a\\"b")', 'a"b'),
    ('loc("a:" )', "a:"), ('loc("")', None),
    ('loc("m.py" : 1 : 2)', None), ('loc("\\zz")', None)])
def test_a_location_has_the_name_that_is_no_file(location: str | None, name: str | None) -> None:
    assert location_name(location) == name


def test_mlir_locations_name_buffers_and_kernels() -> None:
    found = report_of(tosaic.load(LOCATED))
    labels = {b.name: b.label for b in found.buffers}
    assert labels["6"] == "net/whole"
    if "0" in labels:
        assert labels["0"] == "net/sum"
    names_are_said(found)


def test_two_tensors_of_one_name_are_told_apart() -> None:
    text = LOCATED.replace('"net/whole"', '"net/same"').replace('fused["Sum:", "net/sum@main"]', '"net/same"')
    found = report_of(tosaic.load(text))
    same = [b for b in found.buffers if b.label and b.label.startswith("net/same")]
    assert (same and all(b.label == f"net/same (%{b.name})" for b in same)) or len(same) == 1
    names_are_said(found)


def test_a_flatbuffer_keeps_the_names_of_its_locations(tmp_path: pathlib.Path) -> None:
    model = tosaic.load(LOCATED)
    (tmp_path / "m.mlir").write_text(LOCATED)
    assert main(["convert", str(tmp_path / "m.mlir"), str(tmp_path / "m.tosa")]) == 0
    read, written = (report_of(m).buffers for m in (tosaic.load(tmp_path / "m.tosa"), model))
    assert [b.label or b.name for b in read] == [b.label or b.name for b in written]


def tensors_of(path: pathlib.Path) -> dict[str, set[int]]:
    """The names of a .tflite file's tensors, and how many elements those of a name have, as LiteRT tells it."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter, found = litert.Interpreter(model_path=str(path)), dict[str, set[int]]()
    for number in range(interpreter.num_subgraphs() if hasattr(interpreter, "num_subgraphs") else 1):
        for d in interpreter.get_tensor_details(number):
            found.setdefault(d["name"].split(";")[0], set()).add(math.prod(d["shape"].tolist()))
    return found


@pytest.mark.parametrize("name", ["f_mobilenet_block_int8", "f_conv_bn_relu_pool", "f_attention_block", "f_mlp_int8", "v_lstm",
                                  "f_lstm_cell", "f_lstm_keras", "f_while_in_cond"])
def test_tflite_tensors_have_the_names_of_the_file(name: str) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    path = DATA / "corpus" / f"{name}.tflite"
    model, tensors = tosaic.load(path), tensors_of(path)
    found = report_of(model, None if len(model) == 1 else next(iter(model)).name)
    known = {*tensors, *(b.label for b in found.outputs), None}
    for b in found.buffers:
        assert b.label or not NUMBER.fullmatch(b.name), f"{b.name} has no name"
        assert b.label in known or base(b.label) in known
        if b.label in tensors:  # a whole one, which has as many elements
            assert math.prod(b.shape) in tensors[b.label]
    assert all(k.label in known or base(k.label) in known for k in found.kernels)
    names_are_said(found)


def test_the_wake_word_has_no_number_for_a_name() -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    pytest.importorskip("pymicro_wakeword")
    import pymicro_wakeword
    path = pathlib.Path(pymicro_wakeword.__file__).parent / "models" / "okay_nabu.tflite"
    found, tensors = report_of(tosaic.load(path)), tensors_of(path)
    assert not [b.called for b in (*found.buffers, *found.outputs) if NUMBER.fullmatch(b.called)]
    assert found.outputs[0].label == "dense_1"
    assert all(b.label and base(b.label) in tensors for b in found.buffers)
    weights = [b for b in found.constant_buffers if b.nbytes > 1000 and not b.name.endswith(".initial")]
    assert weights and all(b.label and base(b.label) in tensors for b in weights)
    names_are_said(found)


def test_onnx_tensors_and_nodes_have_the_names_of_the_file() -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper
    draw = np.random.default_rng(0)
    nodes = [helper.make_node("Conv", ["image", "w1"], ["/net/conv1/out"], pads=[1, 1, 1, 1], name="/net/conv1"),
             helper.make_node("Softmax", ["/net/conv1/out"], ["/net/soft"], axis=1),
             helper.make_node("Split", ["/net/soft"], ["/net/left", "/net/right"], axis=1, name="/net/split", num_outputs=2),
             helper.make_node("MatMul", ["/net/left", "/net/right"], ["/net/product"], name="/net/matmul"),
             helper.make_node("Softmax", ["/net/product"], ["answer"], axis=-1)]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("answer", TensorProto.FLOAT, [1, 2, 8, 8])],
                              [numpy_helper.from_array(draw.standard_normal((4, 3, 3, 3)).astype("f4"), "w1")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(proto)
    found = report_of(tosaic.from_onnx(proto))
    known = {name for node in nodes for name in node.output} | {node.name for node in nodes}
    assert found.outputs[0].label == "answer" and found.buffers
    for b in found.buffers:
        assert b.label and base(b.label) in known
    assert all(k.label and base(k.label) in known for k in found.kernels)
    assert {base(b.label) for b in found.constant_buffers} <= {"w1", *known}  # packed weights are called after the result
    assert any("node /net/conv1, Conv of opset 18" in (k.place or "") for k in found.kernels)
    names_are_said(found)


def test_a_node_that_cannot_be_compiled_is_still_named_by_its_line() -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper
    nodes = [helper.make_node("NonZero", ["x"], ["where"], name="search")]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info("where", TensorProto.INT64, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert onnx is not None
    with pytest.raises(tosaic.Problem) as caught:
        tosaic.from_onnx(proto).main.lower()
    assert re.match(r"\S+:\d+:\d+: error", str(caught.value)) and "search" in str(caught.value)


@pytest.mark.parametrize("name", ["f_mobilenet_block", "f_attention_block", "v_lstm"])
def test_text_without_names_keeps_its_own(name: str) -> None:
    found = report_of(tosaic.load(DATA / "corpus" / f"{name}.mlir"))
    assert not any(b.label for b in found.buffers)
    assert "in the plan" not in str(found)
    names_are_said(found)


def test_the_name_in_the_plan_stands_beside_the_models() -> None:
    found = report_of(tosaic.load(LOCATED))
    rows = [line.split() for line in str(found).splitlines() if "net/whole:" in line and "float32" in line]
    assert any("6" in row for row in rows) and "in the plan" in str(found)
    assert "net/whole" in [b["label"] for b in found.as_dict()["buffers"]]


def test_tensorflow_operations_have_their_names() -> None:
    tf = pytest.importorskip("tensorflow")

    @tf.function(input_signature=[tf.TensorSpec([2, 4])])
    def net(x):  # type: ignore[no-untyped-def]
        with tf.name_scope("dense"):
            y = tf.matmul(x, tf.ones([4, 3]), name="product")
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.nn.softmax(v)), (0, y))
        return tf.nn.softmax(tf.nn.relu(y, name="act"), name="soft")

    concrete = net.get_concrete_function()
    names = {operation.name for operation in concrete.graph.get_operations()}
    found = report_of(tosaic.from_tensorflow(net))
    assert {"dense/product", "while"} <= {base(b.label) for b in found.buffers} & names
    assert found.kernels[-1].label == "soft"
    names_are_said(found)


def test_names_are_all_that_is_added_to_tensorflows_text() -> None:
    tf = pytest.importorskip("tensorflow")
    from tosaic.jit.models.tensorflow.named_operations import with_names
    layers = [tf.keras.layers.Conv2D(4, 3, name="first"), tf.keras.layers.Flatten(), tf.keras.layers.Dense(2, name="last")]
    model = tf.keras.Sequential([tf.keras.Input([8, 8, 1]), *layers])
    function = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([1, 8, 8, 1])]).get_concrete_function()
    convert = tf.mlir.experimental.convert_function
    text = with_names(convert(function, show_debug_info=True))
    assert re.sub(r' loc\("[^"]*"\)', "", text) == convert(function) and "#loc" not in text
    named = set(re.findall(r'loc\("([^"]*)"\)', text))
    assert named and named <= {operation.name for operation in function.graph.get_operations()}
