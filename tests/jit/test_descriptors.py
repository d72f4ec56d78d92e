"""What a model says of its tensors, in Python: descriptors, `quantize`, `dequantize`, calls with floats."""
from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tosaic
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.descriptors import TensorDescriptor
from tosaic.runtime.quantization import Quantization

TWO = """
func.func @main(%a: tensor<2x3x!quant.uniform<i8:f32:1, {0.5:1,0.25:-2,2.0}>>, %b: tensor<2x3xf32>, %c: tensor<2xi32>)
    -> (tensor<2x3x!quant.uniform<i8:f32:1, {0.5:1,0.25:-2,2.0}>>, tensor<2x3xf32>, tensor<2xi32>) {
  return %a, %b, %c : tensor<2x3x!quant.uniform<i8:f32:1, {0.5:1,0.25:-2,2.0}>>, tensor<2x3xf32>, tensor<2xi32>
}"""
STATE = """
tosa.variable @s = dense<0> : tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<8xi8> {
  %k = "tosa.const"() <{values = dense<[1, 2, 3, 4]> : tensor<4xi8>}> : () -> tensor<4x!quant.uniform<i8:f32, 0.125:7>>
  %both = tosa.concat %x, %k {axis = 0 : i32} : (tensor<4x!quant.uniform<i8:f32, 0.5:-3>>,
    tensor<4x!quant.uniform<i8:f32, 0.125:7>>) -> tensor<8xi8>
  tosa.variable_write @s, %x : tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
  return %both : tensor<8xi8>
}"""
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int32": (-2**31, 2**31 - 1)}


def exact(real: np.float32, scale: float, zero_point: int, low: int, high: int) -> int:
    """What an integer of the storage must be, in integers of any size: an independent formula."""
    from fractions import Fraction
    with np.errstate(all="ignore"):
        quotient = np.float32(real) / np.float32(scale)
    if np.isnan(quotient):
        return zero_point
    if np.isinf(quotient):
        return high if quotient > 0 else low
    magnitude = Fraction(float(abs(quotient)))
    whole = int(magnitude + Fraction(1, 2))
    return min(max((whole if quotient >= 0 else -whole) + zero_point, low), high)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, float, int, list[float]]:
    dtype = draw(st.sampled_from(sorted(RANGES)))
    low, high = RANGES[dtype]
    scale = draw(st.one_of(st.sampled_from([1.0, 0.5, 2.0**-149, 2.0**-130, 3.0e38, 0.10196078568696976]),
                           st.floats(2.0**-149, 2.0**100, width=32)))
    halves = st.integers(-70000, 70000).map(lambda n: float(np.float32(np.float32(n / 2) * np.float32(scale))))
    values = st.lists(st.one_of(st.floats(width=32), halves), min_size=1, max_size=20)
    return dtype, scale, draw(st.integers(low, high)), draw(values)


@given(cases())
@settings(max_examples=300, deadline=None)
def test_stored_integers_are_those_of_exact_arithmetic_for_every_float_and_scale(case: tuple[str, float, int, list[float]]
                                                                                 ) -> None:
    dtype, scale, zero_point, values = case
    numbers = Quantization((scale,), (zero_point,), None, *RANGES[dtype])
    found = numbers.quantize("x", np.array(values, np.float32), np.dtype(dtype))
    assert found.dtype == dtype
    assert found.tolist() == [exact(np.float32(v), scale, zero_point, *RANGES[dtype]) for v in values]


@given(st.sampled_from(sorted(RANGES)), st.floats(2.0**-149, 2.0**100, width=32), st.data())
@settings(deadline=None)
def test_real_numbers_are_the_nearest_float32_of_the_exact_products(dtype: str, scale: float, data: st.DataObject) -> None:
    low, high = RANGES[dtype]
    zero_point, stored = data.draw(st.integers(low, high)), data.draw(st.lists(st.integers(low, high), min_size=1))
    found = Quantization((scale,), (zero_point,), None, low, high).dequantize("x", np.array(stored, dtype), np.dtype(dtype))
    with np.errstate(all="ignore"):
        assert found.tolist() == [float(np.float32(scale * (s - zero_point))) for s in stored]


def test_every_stored_integer_comes_back_from_its_real_number() -> None:
    numbers, every = Quantization((0.1,), (-7,), None, -128, 127), np.arange(-128, 128).astype(np.int8)
    assert np.array_equal(numbers.quantize("x", numbers.dequantize("x", every, np.dtype("int8")), np.dtype("int8")), every)


def test_inputs_and_outputs_say_name_type_shape_strides_and_numbers() -> None:
    entry = tosaic.load(TWO).main
    for descriptor in (entry.inputs[0], entry.outputs[0], entry.compile().inputs[0], entry.compile().outputs[0]):
        assert (descriptor.dtype, descriptor.element, descriptor.shape, descriptor.strides) == ("int8", "i8", (2, 3), (3, 1))
        assert descriptor.axis == 1 and descriptor.scale.tolist() == [0.5, 0.25, 2.0]
        assert descriptor.zero_point.tolist() == [1, -2, 0]
    assert [d.name for d in entry.inputs] == ["a", "b", "c"]
    assert [d.name for d in entry.outputs] == ["result0", "result1", "result2"]
    assert entry.inputs[1].scale is None and entry.inputs[1].zero_point is None and entry.inputs[1].axis is None


def test_variables_and_constants_say_what_their_numbers_mean() -> None:
    entry = tosaic.load(STATE, context=tosaic.Context("descriptors")).main
    (variable,), (constant,) = entry.variables, entry.constants
    assert (variable.name, variable.scale, variable.zero_point, variable.shape) == ("s", 0.5, -3, (4,))
    assert (constant.name, constant.scale, constant.zero_point) == ("k", 0.125, 7)
    assert entry.compile().variables[0].scale == 0.5


def test_lists_of_tensors_are_strings_still() -> None:
    entry = tosaic.load("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }").main
    assert entry.inputs == ("x: tensor<2xf32>",) and entry.outputs == ("tensor<2xf32>",)
    assert ", ".join(entry.inputs) == "x: tensor<2xf32>" and dict(zip(entry.compile().inputs, [1])) == {"x": 1}
    again = pickle.loads(pickle.dumps(entry.inputs[0]))
    assert again == entry.inputs[0] and again.as_json() == entry.inputs[0].as_json()


def test_arrays_are_quantized_by_position_by_name_and_by_mapping() -> None:
    entry = tosaic.load(TWO).main
    a, b, c = np.array([[0.75, 0.25, np.inf]] * 2, np.float64), np.ones((2, 3)), np.array([1, 2], np.int32)
    stored = entry.quantize(a, b, c)
    assert stored[0].tolist() == [[3, -1, 127]] * 2 and stored[1].dtype == np.float32 and stored[2] is c
    assert entry.quantize(a=a)["a"].tolist() == entry.quantize({"a": a})["a"].tolist() == stored[0].tolist()
    results = entry(*stored)
    assert [r.tolist() for r in entry.dequantize(results)] == [r.tolist() for r in entry.dequantize(*results)]
    assert entry.dequantize(results)[0].tolist() == [[1.0, 0.25, 254.0]] * 2
    assert [r.tolist() for r in entry.on_floats(a, b, c)] == [r.tolist() for r in entry.dequantize(results)]
    assert [r.tolist() for r in entry.on_floats(a=a, b=b, c=c)] == [r.tolist() for r in entry.dequantize(results)]
    assert [x.tolist() for x in entry.compile().quantize(a, b, c)] == [x.tolist() for x in stored]


@pytest.mark.parametrize(("call", "says"), [
    (lambda e: e.quantize(np.ones((2, 3)), np.ones((2, 3)), np.ones(2)), "does not say what the numbers of c, i32, stand for"),
    (lambda e: e.quantize(a=np.ones((2, 4))), r"axis 1 with 3 scales, got an array of shape \(2, 4\)"),
    (lambda e: e.quantize(a=np.ones(())), "axis 1 with 3 scales"),
    (lambda e: e.quantize(d=np.ones(2)), "no input or option named d"),
    (lambda e: e.quantize({"d": np.ones(2)}), "no input named d"),
    (lambda e: e.quantize(np.ones(2)), "has 3 inputs, got 1"),
    (lambda e: e.quantize(a="text"), "real numbers, got <U4"),
    (lambda e: e.quantize(a=[[1], [1, 2]]), "must be an array of real numbers"),
    (lambda e: e.dequantize({"result0": np.ones((2, 3), np.int16)}), "must be an array of int8, got int16")])
def test_what_cannot_be_converted_is_a_problem_with_a_remedy(call: object, says: str) -> None:
    with pytest.raises(tosaic.Problem, match=says) as caught:
        call(tosaic.load(TWO).main)  # type: ignore[operator]
    assert caught.value.help


def test_open_extents_have_no_strides_in_front_of_them() -> None:
    entry = tosaic.load("func.func @main(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> { return %x : tensor<2x?x4xf32> }").main
    assert entry.inputs[0].shape == (2, None, 4) and entry.inputs[0].strides == (None, 4, 1)


def test_numbers_of_another_float_type_are_floats() -> None:
    descriptor = TensorDescriptor("x", "x", "bfloat16", (2,))
    assert descriptor.quantize(np.array([1.5, 2.0], np.float32)).dtype == ml_dtypes.bfloat16
    quantized = TensorDescriptor("x", "x", "int8", (2,), "", Quantization((0.5,), (0,), None, -128, 127))
    assert quantized.quantize(np.array([1.5, 2.0], ml_dtypes.bfloat16)).tolist() == [3, 4]


PROGRAM = """
import json, sys, tosaic
entry = tosaic.load(open(sys.argv[1]).read()).main
if sys.argv[2] == "first":
    entry.compile()
print(json.dumps([entry.tensors.as_json(), entry.compile().inputs[0].as_json(), entry.compile().variables[0].as_json(),
                  [m for m in sys.modules if m.startswith("tosaic.lowering.")]]))
"""


def test_a_second_process_has_descriptors_from_the_cache_without_lowering(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(STATE)
    found = []
    for turn in ("first", "second"):
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "model.mlir"), turn], capture_output=True,
                              text=True, env=os.environ | {"TOSAIC_CACHE": str(tmp_path / "cache")}, check=True)
        found.append(json.loads(done.stdout))
    assert found[0][:3] == found[1][:3] and found[1][0]["inputs"][0]["scale"] == 0.5
    assert found[0][3] and not found[1][3]
