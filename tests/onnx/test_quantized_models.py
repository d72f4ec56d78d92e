"""Models that ONNX Runtime's tools quantized, in their five ways: they stay integer, and compute what the runtime computes.

The judge is the runtime as it is by default: with its rewrites it multiplies integers, as tosaic does. Without them it computes
QDQ models in floats, which may be a step off.
"""
from __future__ import annotations

import functools
import io
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import TensorProto, helper, numpy_helper
from tosaic.lowering.dialects.onnx.interpret import interpret
from tosaic.lowering.dialects.onnx.node import IN_FLOAT
from tosaic.lowering.rewrite.onnx.translate import to_tosa

Array = np.ndarray
F = np.float32
node = helper.make_node


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(F)


def weights(*shape: int, seed: int = 0) -> Array:
    return random(*shape, seed=seed) * F((2 / np.prod(shape[1:])) ** 0.5)


def model_of(nodes: Sequence[Any], tensors: Mapping[str, Array], shape: Sequence[Any], opset: int = 17) -> Any:
    """A model from x to y."""
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(list(nodes), "net", [x], [y], [numpy_helper.from_array(v, k) for k, v in tensors.items()])
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=9)
    return onnx.shape_inference.infer_shapes(found)


SHAPE = (2, 3, 10, 8)


def network() -> Any:
    """Convolutions of all kinds, and products; all of it is integer in the runtime, too."""
    nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4), node("Relu", ["c1"], ["r1"]),
             node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1, 0, 1, 0], strides=[2, 1], group=8), node("Relu", ["c2"], ["r2"]),
             node("Conv", ["r2", "w3"], ["c3"], group=2), node("Transpose", ["c3"], ["t"], perm=[0, 2, 3, 1]),
             node("Reshape", ["t", "dims"], ["f"]), node("Gemm", ["f", "w4", "b4"], ["g"], transB=1),
             node("MatMul", ["g", "w5"], ["y"])]
    tensors = {"w1": weights(8, 3, 3, 3), "b1": weights(8), "w2": weights(8, 1, 3, 3), "b2": weights(8),
               "w3": weights(6, 4, 1, 1), "dims": np.array([2, -1]), "w4": weights(10, 6 * 30), "b4": weights(10),
               "w5": weights(10, 7)}
    return model_of(nodes, tensors, SHAPE)


def quantize(model: Any, way: str, shape: Sequence[int] = SHAPE) -> Any:
    """The model as the runtime's tools quantize it. Weights with a sign have seven bits: the runtime multiplies them by bytes
    without one, and without VNNI the sum of two such products saturates at 16 bits."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_dynamic,
        quantize_static,
    )
    logging.getLogger().setLevel(logging.ERROR)

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.arrays: Iterator[Array] = iter([random(*shape, seed=n) for n in range(3)])

        def get_next(self) -> Any:
            found = next(self.arrays, None)
            return None if found is None else {"x": found}

    kind, _, types = way.partition(" ")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source.onnx", Path(folder) / "target.onnx"
        onnx.save(model, source)
        if kind == "dynamic":
            quantize_dynamic(source, target, weight_type=QuantType[types])
        else:
            form, per_channel = (QuantFormat.QOperator, False) if kind == "operators" else (QuantFormat.QDQ, kind == "channels")
            activation, weight = (QuantType[t] for t in types.split())
            quantize_static(source, target, Reader(), quant_format=form, per_channel=per_channel, activation_type=activation,
                            weight_type=weight, reduce_range=weight == QuantType.QInt8)
        return onnx.load(target)


def runtime(model: Any, x: Array, rewrites: bool = True, threads: int = 0) -> list[Any]:
    """The runtime's results, its rewrites on and its threads as many as cores, as they are by default."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    if not rewrites:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: x}))


def lowered(model: Any) -> Any:
    return to_tosa(tosaic.from_onnx(model).module, None)


def products(module: Any) -> list[str]:
    """The element types of what is multiplied in convolutions and products of matrices."""
    return [str(o.operands[0].tensor.element) for f in module.functions for o in f.body.walk()
            if o.op.name in ("tosa.conv2d", "tosa.conv3d", "tosa.depthwise_conv2d", "tosa.matmul")]


STATIC = [f"{kind} {types}" for kind in ("tensors", "channels", "operators")
          for types in ("QUInt8 QUInt8", "QUInt8 QInt8", "QInt8 QInt8")]


@functools.cache
def quantized_network(way: str) -> Any:
    return quantize(network(), way)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", STATIC)
def test_networks_that_are_quantized_are_the_runtimes_byte_for_byte(way: str) -> None:
    model = quantized_network(way)
    found, module = tosaic.from_onnx(model), lowered(model)
    for seed in range(5, 8):
        x = random(*SHAPE, seed=seed)
        np.testing.assert_array_equal(found(x), runtime(model, x)[0])
    assert set(products(module)) == {"i8"} and not module.attributes.get(IN_FLOAT)


@pytest.mark.parametrize("way", STATIC)
def test_the_interpreter_is_a_step_beside_at_most(way: str) -> None:
    """It runs the file's own operators, those of a QDQ model in floats."""
    model, x = quantized_network(way), random(*SHAPE, seed=5)
    found = interpret(tosaic.from_onnx(model).module, "main", [x])[0]
    right = runtime(model, x)[0]
    step = np.diff(np.unique(right)).min()
    assert np.abs(found - right).max() <= 2.01 * step


def test_scales_that_inputs_give() -> None:
    for types in ("QUInt8", "QInt8"):
        model, x = quantize(network(), f"dynamic {types}"), random(*SHAPE, seed=5)
        found = tosaic.from_onnx(model)
        for result in (found(x), interpret(found.module, "main", [x])[0]):
            np.testing.assert_allclose(result, runtime(model, x)[0], rtol=0, atol=1e-5)
        assert set(products(lowered(model))) == {"i8"}


# ---- one operator between bytes ------------------------------------------------------------------------------------------
def between(make: Callable[[], Sequence[Any]], tensors: Mapping[str, Array], types: str) -> Any:
    return quantize(model_of(make(), tensors, SHAPE), f"tensors {types}")


OPERATORS: Mapping[str, tuple[Callable[[], Sequence[Any]], Mapping[str, Array]]] = {
    "Add": (lambda: [node("Add", ["x", "w"], ["y"])], {"w": random(*SHAPE, seed=9)}),
    "Mul": (lambda: [node("Mul", ["x", "w"], ["y"])], {"w": random(*SHAPE[1:], seed=9)}),
    "Sigmoid": (lambda: [node("Sigmoid", ["x"], ["y"])], {}),
    "LeakyRelu": (lambda: [node("LeakyRelu", ["x"], ["y"], alpha=0.1)], {}),
    "Concat": (lambda: [node("Sigmoid", ["x"], ["s"]), node("Concat", ["x", "s"], ["y"], axis=1)], {}),
    "Slice": (lambda: [node("Slice", ["x", "one", "two", "axis"], ["y"])],
              {"one": np.array([1]), "two": np.array([7]), "axis": np.array([2])}),
    "Clip": (lambda: [node("Conv", ["x", "w"], ["c"]), node("Clip", ["c", "low", "high"], ["y"])],
             {"w": weights(4, 3, 3, 3), "low": np.array(-0.3, F), "high": np.array(0.9, F)}),
}


@pytest.mark.parametrize("types", ["QUInt8 QUInt8", "QInt8 QInt8"])
@pytest.mark.parametrize("name", OPERATORS)
def test_one_operator_between_bytes(name: str, types: str) -> None:
    """A step off where the runtime's sum is nearly half way between two, in one of a thousand at most."""
    model = between(*OPERATORS[name], types)
    x = random(*SHAPE, seed=5)
    found, right = tosaic.from_onnx(model)(x), runtime(model, x)[0]
    step = np.diff(np.unique(right)).min()
    off = np.abs(found - right)
    assert off.max() <= 1.01 * step and (off > 0.01 * step).mean() <= 1e-3
    assert not lowered(model).attributes.get(IN_FLOAT)


MOVES = {
    "Reshape": node("Reshape", ["f", "shape"], ["g"]), "Transpose": node("Transpose", ["f"], ["g"], perm=[0, 2, 3, 1]),
    "Flatten": node("Flatten", ["f"], ["g"]), "Slice": node("Slice", ["f", "one", "two"], ["g"]),
    "Gather": node("Gather", ["f", "one"], ["g"], axis=1), "Tile": node("Tile", ["f", "times"], ["g"]),
    "Expand": node("Expand", ["f", "wide"], ["g"]), "Pad": node("Pad", ["f", "pads"], ["g"]),
    "PadEdge": node("Pad", ["f", "pads"], ["g"], mode="edge"), "DepthToSpace": node("DepthToSpace", ["f"], ["g"], blocksize=2),
    "Resize": node("Resize", ["f", "", "scales"], ["g"], mode="nearest"), "Concat": node("Concat", ["f", "f"], ["g"], axis=2),
    "ReduceMax": node("ReduceMax", ["f"], ["g"], axes=[1], keepdims=0), "Unsqueeze": node("Unsqueeze", ["f", "one"], ["g"]),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("name", MOVES)
def test_what_only_moves_integers_moves_integers(name: str, dtype: Any) -> None:
    tensors = {"shape": np.array([4, -1]), "one": np.array([1]), "two": np.array([2]), "times": np.array([1, 2, 1, 1]),
               "wide": np.array([2, 4, 6, 4]), "pads": np.array([0, 0, 1, 0, 0, 0, 0, 2]),
               "scales": np.array([1, 1, 2, 1.5], F), "s": np.array(0.05, F), "z": np.array(7, dtype)}
    used = set(MOVES[name].input) | {"s", "z"}
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["f"]), MOVES[name], node("QuantizeLinear", ["g", "s", "z"], ["y"])]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", kind, [2, 4, 6, 4])],
                              [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(v, k) for k, v in tensors.items() if k in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = np.random.default_rng(1).integers(0, 120, (2, 4, 6, 4)).astype(dtype)
    np.testing.assert_array_equal(tosaic.from_onnx(model)(x), runtime(model, x, rewrites=False)[0])
    kept = [o for f in lowered(model).functions for o in f.body.walk() if o.op.name not in ("tosa.const", "tosa.const_shape")]
    assert kept and not any(v.tensor.element.is_float for o in kept for v in o.results)


@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_that_the_graph_itself_quantizes(per_channel: bool) -> None:
    """As training with fake quantization exports them."""
    scale = np.linspace(0.02, 0.03, 4).astype(F) if per_channel else np.array(0.025, F)
    tensors = {"w": weights(4, 3, 3, 3), "ws": scale, "wz": np.zeros(scale.shape, np.int8), "s": np.array(0.03, F),
               "z": np.array(-3, np.int8), "t": np.array(0.02, F), "u": np.array(-128, np.int8)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             node("QuantizeLinear", ["w", "ws", "wz"], ["wq"], axis=0),
             node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"], axis=0), node("Conv", ["d", "wd"], ["c"]),
             node("Relu", ["c"], ["r"]), node("QuantizeLinear", ["r", "t", "u"], ["p"]),
             node("DequantizeLinear", ["p", "t", "u"], ["y"])]
    model, x = model_of(nodes, tensors, SHAPE), random(*SHAPE, seed=4)
    np.testing.assert_array_equal(tosaic.from_onnx(model)(x), runtime(model, x)[0])
    assert products(lowered(model)) == ["i8"] and IN_FLOAT not in lowered(model).attributes


def test_what_stays_in_floats_is_said() -> None:
    model = between(lambda: [node("Softmax", ["x"], ["y"], axis=-1, name="probabilities")], {}, "QInt8 QInt8")
    assert lowered(model).attributes[IN_FLOAT] == ("Softmax (probabilities): it has no form in integers",)
    report = str(tosaic.from_onnx(model).main.lower().report())
    assert "in float   Softmax (probabilities): it has no form in integers" in report
    wide = quantize(network(), "tensors QUInt16 QInt8")
    assert any("operands of 16 bits" in line for line in lowered(wide).attributes[IN_FLOAT])
    assert IN_FLOAT not in lowered(network()).attributes


# ---- inputs and outputs that are bytes -----------------------------------------------------------------------------------
def test_descriptors_say_what_bytes_stand_for() -> None:
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["f"]), node("Relu", ["f"], ["r"]),
             node("QuantizeLinear", ["r", "t", "z"], ["y"])]
    tensors = {"s": np.array(0.05, F), "t": np.array(0.02, F), "z": np.array(100, np.uint8)}
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.UINT8, [2, 5])],
                              [helper.make_tensor_value_info("y", TensorProto.UINT8, [2, 5])],
                              [numpy_helper.from_array(v, k) for k, v in tensors.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    main = tosaic.from_onnx(io.BytesIO(model.SerializeToString())).main
    (x,), (y,) = main.inputs, main.outputs
    assert (x.dtype, x.zero_point, y.zero_point) == ("uint8", 100, 100)
    np.testing.assert_allclose([x.scale, y.scale], [0.05, 0.02], rtol=1e-6)
    stored = np.arange(90, 110, 2, dtype=np.uint8).reshape(2, 5)
    np.testing.assert_array_equal(main(stored), runtime(model, stored)[0])


# ---- weights of four bits ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("is_symmetric", [True, False])
def test_weights_of_four_bits(is_symmetric: bool) -> None:
    """As the tools write them in QDQ form: a scale for each block of 16 rows. The runtime's rewrites allow themselves to make
    bytes of x, too: they are off."""
    r = np.random.default_rng(3)
    stored = r.integers(-8, 8, (64, 32))
    low = helper.make_tensor("w", TensorProto.INT4, [64, 32], stored.reshape(-1))
    zero = helper.make_tensor("z", TensorProto.INT4, [4, 32], r.integers(-3, 3, 128))
    scale = numpy_helper.from_array(r.uniform(0.01, 0.1, (4, 32)).astype(F), "s")
    nodes = [node("DequantizeLinear", ["w", "s"] if is_symmetric else ["w", "s", "z"], ["d"], axis=0, block_size=16),
             node("MatMul", ["x", "d"], ["y"])]
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 64]), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "net", [x], [y], [low, scale, *([] if is_symmetric else [zero])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    given = random(5, 64, seed=3)
    found = tosaic.from_onnx(model)
    for result in (found(given), interpret(found.module, "main", [given])[0]):
        np.testing.assert_allclose(result, runtime(model, given, rewrites=False)[0], rtol=0, atol=1e-4)
    assert lowered(model).attributes[IN_FLOAT] == ("MatMul (1 node): its weights have a scale for each block",)


def test_operators_that_are_floats_inside_are_said() -> None:
    nodes = [node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=64, N=8, block_size=32)]
    tensors = {"b": np.zeros((8, 2, 16), np.uint8), "s": np.ones(16, F)}
    model = model_of(nodes, tensors, (5, 64))
    assert lowered(model).attributes[IN_FLOAT] == (
        "com.microsoft.MatMulNBits (1 node): its weights have a scale for each block",)
    assert any("QLinearSoftmax" in line for line in lowered(
        quantize(model_of([node("Softmax", ["x"], ["y"])], {}, SHAPE), "operators QUInt8 QUInt8")).attributes[IN_FLOAT])


# ---- recurrence ----------------------------------------------------------------------------------------------------------
def lstm(directions: int, hidden: int = 6, has_bias: bool = True, **attributes: Any) -> Any:
    """An LSTM from x [steps, batch, 5] to all three of its results."""
    tensors = {"w": random(directions, 4 * hidden, 5), "r": random(directions, 4 * hidden, hidden)} | (
        {"b": random(directions, 8 * hidden)} if has_bias else {})
    name = {1: "forward", 2: "bidirectional"}[directions]
    nodes = [node("LSTM", ["x", "w", "r", *(["b"] if has_bias else [])], ["y", "h", "c"],
                  **{"hidden_size": hidden, "direction": name} | attributes)]
    model = model_of(nodes, tensors, (7, 3, 5))
    model.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in ("h", "c"))
    return model


RECURRENCES: list[tuple[int, dict[str, Any], bool]] = [
    (1, {}, False), (2, {}, True), (2, {}, False), (1, {"direction": "reverse"}, False), (1, {"has_bias": False}, True),
    (1, {"clip": 0.5}, False)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("directions", "attributes", "per_channel"), RECURRENCES)
def test_recurrence_whose_states_become_bytes(directions: int, attributes: Mapping[str, Any], per_channel: bool) -> None:
    """On one thread the runtime makes bytes of the states of the whole batch, as here; on more of each thread's part."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source.onnx", Path(folder) / "target.onnx"
        onnx.save(lstm(directions, **attributes), source)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=per_channel, reduce_range=True)
        model = onnx.load(target)
    assert [n.op_type for n in model.graph.node] == ["DynamicQuantizeLSTM"]
    x = random(7, 3, 5, seed=2)
    found, right = tosaic.from_onnx(model), runtime(model, x, threads=1)
    for results in (found(x), interpret(found.module, "main", [x])):
        for result, wanted in zip(results, right, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5)
    assert set(products(lowered(model))) == {"i8"}
