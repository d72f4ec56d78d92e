"""Sentences of the rationale of MLIR's TOSA dialect, tried one by one."""
from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.types import I8, I32, Array
from tosaic.lowering.kernels.interpret import run
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import interpret

from ..fuse.graphs import Graph, conv, random, rescale

DATA = Path(__file__).resolve().parents[1] / "data"
X = np.array([[1.5, -2.0, 0.25]], np.float32)


def of_tensorflow() -> Any:
    return tosaic.load('func.func @main(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {\n%r = "tf.Tanh"(%x) : (tensor<1x3xf32>) -> '
                       "tensor<1x3xf32>\nreturn %r : tensor<1x3xf32>\n}")


def of_onnx() -> Any:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    given, found = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 3]) for n in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Tanh", ["x"], ["y"])], "tanh", [given], [found])
    return tosaic.from_onnx(onnx.helper.make_model(graph))


def of_torch() -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return tosaic.from_torch(torch.nn.Tanh(), torch.zeros(1, 3))


def operators(entry: Any) -> set[str]:
    """The operators of what an entry becomes."""
    return {o.op.name for o in entry.lower().traced.function.body.walk()}


@pytest.mark.parametrize("door", [of_tensorflow, of_onnx, of_torch])
def test_a_model_of_a_framework_is_expressed_in_tosa(door: Callable[[], Any]) -> None:
    model = door()
    np.testing.assert_allclose(model(X), np.tanh(X), rtol=1e-6)
    assert {n for n in operators(model.entry()) if "const" not in n} <= {"tosa.tanh", "tosa.identity"}


def test_a_file_of_litert_is_expressed_in_tosa() -> None:
    """A counter: a variable, and an addition."""
    model = tosaic.load(DATA / "corpus" / "v_counter.tflite", context=tosaic.Context("a counter"))
    assert {"tosa.variable_read", "tosa.add", "tosa.variable_write"} <= operators(model.entry())


UNIT = 2.0 ** -23
PRECISION: dict[str, tuple[Callable[[float], float], Callable[[float, float], float]]] = {
    "reciprocal": (lambda x: 1 / x, lambda x, y: 1), "rsqrt": (lambda x: 1 / math.sqrt(x), lambda x, y: 2),
    "erf": (math.erf, lambda x, y: 5), "exp": (math.exp, lambda x, y: 3 + 2 * abs(x)),
    "log": (math.log, lambda x, y: max(5.0, 0.5 / abs(y))),
    "tanh": (math.tanh, lambda x, y: max(4 * (3 + 2 * abs(x)), 0.5 / abs(y))),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda x, y: 2 * (1 + abs(x)))}
"""Functions of a float, and the units in the last place that the specification allows, for an input and the exact result."""


@pytest.mark.parametrize("name", PRECISION)
def test_a_function_has_the_precision_that_its_operator_states(name: str) -> None:
    exact, units = PRECISION[name]
    x = np.geomspace(0.01, 10, 2000).astype(np.float32)
    x = x[np.abs(x - 1) > 1e-3]
    right = np.array([exact(float(v)) for v in x])
    allowed = np.array([(units(float(v), y) + 1) * UNIT * abs(y) for v, y in zip(x, right)])
    found = np.asarray(tosaic.jit(getattr(tosaic.tosa, name))(x), np.float64)
    assert (np.abs(found - right) <= allowed).all()


def narrowed(g: Graph) -> Any:
    """An integer cut to 8 bits and widened again, in the middle of other arithmetic."""
    x = g.op("cast", g.op("add", g.input(4, 9, dtype="int32"), np.full((1, 1), 77, np.int32)), to=I8)
    return g.op("mul", g.op("cast", x, to=I32), np.full((1, 1), 3, np.int32), np.zeros(1, np.int8))


def quantized(g: Graph) -> Any:
    rng = np.random.default_rng(1)
    x = g.input(1, 5, 7, 8, dtype="int8")
    y = conv(g, x, rng.integers(-127, 128, (16, 3, 3, 8)).astype(np.int8), rng.integers(-99, 99, 16).astype(np.int32), 3,
             pad=(1, 1, 1, 1))
    return g.op("clamp", rescale(g, y, 16, rng), min_val=-100, max_val=100)


@pytest.mark.parametrize("build", [narrowed, quantized])
def test_fused_operators_give_the_integers_of_the_operators_one_by_one(build: Callable[[Graph], Any]) -> None:
    g = Graph()
    module, rng = g.module(build(g)), np.random.default_rng(2)
    function = module.function("main")
    inputs = [random(rng, v) for v in function.arguments]
    together, apart = (fuse(module, function, inlines) for inlines in (True, False))
    assert len(together.kernels) == 1 < len(apart.kernels)
    right, = interpret(module, function, inputs)
    for kernels in (together, apart):
        np.testing.assert_array_equal(run(kernels, inputs)[0], right)


ROW = ('func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {{\n'
       '%m = "tosa.const"() <{{values = dense<1073741824> : tensor<1xi32>}}> : () -> tensor<1xi32>\n'
       '%s = "tosa.const"() <{{values = dense<31> : tensor<1xi8>}}> : () -> tensor<1xi8>\n'
       '%a = "tosa.const"() <{{values = dense<{0}> : tensor<1xi8>}}> : () -> tensor<1xi8>\n'
       '%b = "tosa.const"() <{{values = dense<{1}> : tensor<1xi8>}}> : () -> tensor<1xi8>\n'
       "%r = tosa.rescale %x, %m, %s, %a, %b {{scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false, "
       "input_unsigned = false, output_unsigned = false}} : (tensor<2xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, "
       "tensor<1xi8>) -> tensor<2xi8>\nreturn %r : tensor<2xi8>\n}}")


@pytest.mark.parametrize("before, after", [(0, 0), (-3, 5), (100, -100)])
def test_a_rescale_takes_the_zero_point_away_first_and_adds_the_other_one_last(before: int, after: int) -> None:
    """Half of the distance to one zero point, from the other one."""
    source, x = ROW.format(before, after), np.array([-128, 101], np.int8)
    right = np.clip(np.floor((x.astype(np.int64) - before) / 2 + 0.5) + after, -128, 127).astype(np.int8)
    for found in (interpret(read_module(source), "main", [x])[0], tosaic.load(source)(x)):
        np.testing.assert_array_equal(found, right)


def test_a_convolution_takes_its_zero_points_away_before_it_multiplies() -> None:
    rng = np.random.default_rng(3)
    x, weight = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 2, 2, 3), (4, 1, 1, 3)))
    function = tosaic.jit(lambda v: tosaic.tosa.conv2d(v, weight, [7], input_zp=-5, weight_zp=9))
    right: Array = np.einsum("bhwc,oc->bhwo", x.astype(np.int32) + 5, weight[:, 0, 0].astype(np.int32) - 9) + 7
    traced = function.trace(x)
    for found in (interpret(traced.module, traced.function, [x])[0], function(x)):
        np.testing.assert_array_equal(found, right)


CASTS = """func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2x{0}>, tensor<2x2xf32>) {{
%q = quant.qcast %x : tensor<2x2xf32> to tensor<2x2x{0}>
%r = quant.dcast %q : tensor<2x2x{0}> to tensor<2x2xf32>
return %q, %r : tensor<2x2x{0}>, tensor<2x2xf32>
}}"""


@pytest.mark.parametrize("type, scale, zero", [("!quant.uniform<i8:f32, 0.5:-3>", 0.5, -3),
                                               ("!quant.uniform<i8:f32:1, {0.5:1,0.25:-2}>", [0.5, 0.25], [1, -2])])
def test_the_parameters_of_a_tensors_type_are_those_of_the_operators_that_quantize_it(type: str, scale: Any, zero: Any) -> None:
    x = np.array([[1.0, -2.25], [100.0, 3.5]], np.float32)
    right = np.clip(np.rint(x / np.float32(scale)) + zero, -128, 127).astype(np.int8)
    model = tosaic.load(CASTS.format(type))
    stored, real = model(x)
    np.testing.assert_array_equal(stored, right)
    np.testing.assert_array_equal(real, (right - np.int32(zero)) * np.float32(scale))
    assert all(name.startswith(("tosa.", "tosaic.")) for name in operators(model.entry()))
