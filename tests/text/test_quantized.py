"""Quantized tensors: their types are read and printed, checked against the operators, and taken as stored by the code."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.flatbuffer.reader import read_module as read_file
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.quantized import Quantized, any_quantized, calibrated, uniform
from tosaic.lowering.graph.types import BF16, F16, F32, F64, I4, I8, I16, I32, UI8, UI16, ElementType, OpaqueType, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.rewrite.specialize import specialize
from tosaic.lowering.rewrite.strip_quantized import strip_quantized
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

from .equality import equal_modules


def argument(type: str, before: str = "") -> object:
    module = read_module(f"{before}\nfunc.func @f(%a: {type}) -> {type} {{ return %a : {type} }}")
    verify(module)
    assert equal_modules(module, read_module(print_module(module)))
    return module.functions[0].arguments[0].type


# ---- types as text -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, expected", [
    ("!quant.uniform<i8:f32, 0.01:-3>", uniform("i8", F32, [0.01], [-3])),
    ("!quant.uniform<i8:f32, 1.000000e-02:-3>", uniform("i8", F32, [0.01], [-3])),
    ("!quant.uniform<i8:f32, 2.0>", uniform("i8", F32, [2])),
    ("!quant.uniform<u8:f32, 0.5:128>", uniform("u8", F32, [0.5], [128])),
    ("!quant.uniform<ui8:f16, 0.5:128>", uniform("u8", F16, [0.5], [128])),
    ("!quant.uniform<si8:f32, 0.5>", uniform("i8", F32, [0.5])),
    ("!quant.uniform<i4:bf16, 0.5:-8>", uniform("i4", BF16, [0.5], [-8])),
    ("!quant.uniform<i16:f64, 1.5259e-05>", uniform("i16", F64, [1.5259e-05])),
    ("!quant.uniform<i32:f32, 1e-30>", uniform("i32", F32, [1e-30])),
    ("!quant.uniform<i8<-127:127>:f32, 0.5>", uniform("i8", F32, [0.5], limits=(-127, 127))),
    ("!quant.uniform<i8<-128:127>:f32, 0.5>", uniform("i8", F32, [0.5])),
    ("!quant.uniform< i8 < -127 : 127 > : f32 , 0.5 : 3 >", uniform("i8", F32, [0.5], [3], limits=(-127, 127))),
    ("!quant.uniform<i8<-127:127>:f32:0, {0.1,0.2:1}>", uniform("i8", F32, [0.1, 0.2], [0, 1], 0, (-127, 127))),
    ("!quant.uniform<i8:f32:0, {0.1 : 5, 0.2}>", uniform("i8", F32, [0.1, 0.2], [5, 0], 0)),
    ("!quant.any<i8<-8:7>>", any_quantized("i8", None, (-8, 7))),
    ("!quant.any<u16>", any_quantized("u16")),
    ("!quant.any<i8<-8:7>:f32>", any_quantized("i8", F32, (-8, 7))),
    ("!quant.calibrated<f32<-0.998:1.2321>>", calibrated(F32, -0.998, 1.2321)),
    ("!quant.calibrated<f16<-1.0e-2:2>>", calibrated(F16, -0.01, 2)),
])
def test_a_tensor_of_a_quantized_type_is_read_and_prints_as_text_that_reads_back(text: str, expected: Quantized) -> None:
    assert argument(f"tensor<2x3x{text}>") == TensorType((2, 3), expected)
    assert argument("tensor<2x3x!q>", f"!q = {text}") == TensorType((2, 3), expected)
    assert argument(f"tensor<2x3x{expected}>") == TensorType((2, 3), expected)
    assert argument(text) == OpaqueType(str(expected))


@pytest.mark.parametrize("found, name", [
    (uniform("i8", F32, [0.01], [-3]), "!quant.uniform<i8:f32, 0.01:-3>"),
    (uniform("i8", F32, [1e-7]), "!quant.uniform<i8:f32, 1.0e-07>"),
    (uniform("i8", F32, [0.1, 2], [0, 1], 3, (-127, 127)), "!quant.uniform<i8<-127:127>:f32:3, {0.1,2.0:1}>"),
    (any_quantized("u8"), "!quant.any<u8>"),
    (calibrated(F32, -1, 2.5), "!quant.calibrated<f32<-1.0:2.5>>"),
])
def test_a_type_prints_in_this_form(found: Quantized, name: str) -> None:
    assert str(found) == found.name == name
    assert f"{TensorType((2,), found)}" == f"tensor<2x{name}>"


@pytest.mark.parametrize("storage, stored", [("i4", I4), ("i8", I8), ("i16", I16), ("i32", I32), ("u8", UI8), ("u16", UI16)])
def test_arrays_are_those_of_the_storage_type(storage: str, stored: ElementType) -> None:
    found = uniform(storage, F32, [0.5])
    assert (found.stored, found.dtype, found.itemsize, found.bits) == (stored, stored.dtype, stored.itemsize, stored.bits)
    assert calibrated(F32, 0, 1).dtype == np.float32 and calibrated(F32, 0, 1).is_float


def test_scales_are_kept_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    for scale in np.exp(rng.uniform(-80, 80, 50)):
        found = argument(f"tensor<1x{uniform('i8', F32, [float(scale)])}>")
        assert found == TensorType((1,), uniform("i8", F32, [float(scale)]))


@pytest.mark.parametrize("type, message", [
    ("!quant.uniform<i8:f32>", "expected a quantized type"),
    ("!quant.uniform<i8, 0.5>", "expected a quantized type"),
    ("!quant.uniform", "expected a quantized type"),
    ("!quant.uniform<i8:i32, 0.5>", "i32 cannot be what"),
    ("!quant.uniform<i8:f32, 0.0>", "must be positive"),
    ("!quant.uniform<i8:f32, -0.5>", "must be positive"),
    ("!quant.uniform<i8:f32, 1e999>", "must be positive and finite"),
    ("!quant.uniform<i8:f32, 0.5:200>", "zero point 200 is outside"),
    ("!quant.uniform<i8<-8:7>:f32, 0.5:-9>", "zero point -9 is outside"),
    ("!quant.uniform<u8:f32, 0.5:-1>", "zero point -1 is outside"),
    ("!quant.uniform<i8<-129:127>:f32, 0.5>", "no part of the range of i8"),
    ("!quant.uniform<u8<-1:127>:f32, 0.5>", "no part of the range of u8"),
    ("!quant.uniform<i8<7:7>:f32, 0.5>", "no part of the range"),
    ("!quant.uniform<i8:f32:0, 0.5>", "with an axis one for each index"),
    ("!quant.uniform<i8:f32, {0.5,0.2}>", "expected one scale"),
    ("!quant.uniform<i8:f32:0, {0.5,}>", "expected a scale"),
    ("!quant.uniform<i8:f32:0, {}>", "expected a scale"),
    ("!quant.uniform<i8:f32, a>", "expected a scale"),
    ("!quant.any<i8<-129:127>>", "no part of the range"),
    ("!quant.any<i8:i8>", "i8 cannot be what"),
    ("!quant.calibrated<f32<1.0:1.0>>", "is empty"),
    ("!quant.calibrated<i8<-1.0:1.0>>", "i8 cannot be what"),
    ("!quant.calibrated<f32>", "expected a quantized type"),
])
def test_what_is_no_quantized_type_is_a_problem_at_its_place(type: str, message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        argument(f"tensor<2x{type}>")
    assert caught.value.position is not None and caught.value.position.line == 2
    assert not caught.value.unsupported


@pytest.mark.parametrize("type", ["!quant.uniform<i3:f32, 0.5>", "!quant.uniform<u4:f32, 0.5>", "!quant.any<i5>",
                                  "!quant.uniform<i8:f32:{0:1,1:2}, {{0.1:1,0.2}}>", "!quant.mask<i8>"])
def test_quantized_types_that_are_not_known_are_kept_as_text(type: str) -> None:
    assert argument(f"tensor<2x{type}>") == OpaqueType(f"tensor<2x{type}>")


# ---- agreement ---------------------------------------------------------------------------------------------------
X, W = "!quant.uniform<i8:f32, 0.5:-3>", "!quant.uniform<i8<-127:127>:f32:0, {0.1,0.2}>"
Y = "!quant.uniform<i8:f32, 0.25:5>"


def convolution(x: str = X, w: str = W, y: str = Y, input_zp: int = -3, weight_zp: int = 0, before: int = 0, after: int = 5,
                weights: str = "[[[[1]]], [[[-2]]]]") -> Module:
    """A convolution whose result is brought back to eight bits, as converters write it."""
    def const(name: str, value: object, type: str, result: str | None = None) -> str:
        return f'%{name} = "tosa.const"() <{{values = dense<{value}> : {type}}}> : () -> {result or type}'

    return read_module(f"""func.func @main(%x: tensor<1x2x2x1x{x}>) -> tensor<1x2x2x2x{y}> {{
      {const("w", weights, "tensor<2x1x1x1xi8>", f"tensor<2x1x1x1x{w}>")}
      {const("b", 0, "tensor<2xi32>")}
      {const("xz", input_zp, "tensor<1xi8>")}
      {const("wz", weight_zp, "tensor<1xi8>")}
      %0 = tosa.conv2d %x, %w, %b, %xz, %wz {{acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>,
        stride = array<i64: 1, 1>}} : (tensor<1x2x2x1x{x}>, tensor<2x1x1x1x{w}>, tensor<2xi32>, tensor<1xi8>, tensor<1xi8>)
        -> tensor<1x2x2x2xi32>
      {const("m", 1 << 30, "tensor<1xi32>")}
      {const("s", 30, "tensor<1xi8>")}
      {const("oz", before, "tensor<1xi32>")}
      {const("yz", after, "tensor<1xi8>")}
      %1 = tosa.rescale %0, %m, %s, %oz, %yz {{scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false,
        input_unsigned = false, output_unsigned = false}} : (tensor<1x2x2x2xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>,
        tensor<1xi8>) -> tensor<1x2x2x2x{y}>
      return %1 : tensor<1x2x2x2x{y}>
    }}""")


def test_a_quantized_graph_verifies_prints_and_reads_back() -> None:
    module = convolution()
    verify(module)
    printed = print_module(module)
    assert f"tensor<2x1x1x1x{W}>" in printed and "values = dense<[[[[1]]], [[[-2]]]]> : tensor<2x1x1x1xi8>" in printed
    again = read_module(printed)
    verify(again)
    assert equal_modules(module, again) and print_module(again) == printed


@pytest.mark.parametrize("given, message", [
    ({"input_zp": -4}, r"input_zp is -4, but %x is tensor<1x2x2x1x!quant\.uniform<i8:f32, 0\.5:-3>>, whose zero point is -3"),
    ({"input_zp": 0}, "input_zp is 0"),
    ({"weight_zp": 1}, "weight_zp is 1, .* zero point is 0"),
    ({"w": "!quant.uniform<i8:f32:0, {0.1,0.2:7}>"}, "weight_zp is 0, .* zero point is 7"),
    ({"after": 4}, "output_zp is 4, .* zero point is 5"),
    ({"w": "!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>"}, "3 scales for the 2 indices along axis 0"),
    ({"w": "!quant.uniform<i8:f32:1, {0.1,0.2}>"}, "2 scales for the 1 indices along axis 1"),
    ({"w": "!quant.uniform<i8:f32:4, {0.1,0.2}>"}, "axis 4, which it does not have"),
    ({"x": "!quant.uniform<i8:f32:3, {0.1:-3,0.2:-3}>"}, "2 scales for the 1 indices along axis 3"),
    ({"weights": "[[[[1]]], [[[-128]]]]"}, "values from -128 to 1, its type .* holds -127 to 127"),
    ({"x": "!quant.uniform<i16:f32, 0.5:-3>"}, "conv2d"),
    ({"y": "!quant.uniform<i16:f32, 0.5>", "after": 0}, "rescale"),
])
def test_types_that_do_not_agree_with_the_operators_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        verify(convolution(**given))  # type: ignore[arg-type]
    assert caught.value.position and not caught.value.unsupported


@pytest.mark.parametrize("given", [
    {"x": "!quant.any<i8>"}, {"x": "i8"}, {"w": "i8"}, {"y": "i8"}, {"w": "!quant.any<i8<-8:7>>", "weight_zp": 3},
    {"x": "!quant.any<i8:f32>", "input_zp": 9}, {"w": "!quant.uniform<i8:f32:0, {0.1:7,0.2:7}>", "weight_zp": 7},
    {"y": "!quant.uniform<i8:f32:3, {0.1:5,0.2:5}>"},
])
def test_what_is_not_given_agrees_with_everything(given: dict[str, object]) -> None:
    verify(convolution(**given))  # type: ignore[arg-type]


POOL = ("tosa.avg_pool2d %x, %z, %z {{acc_type = i32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = "
        "array<i64: 1, 1>}} : (tensor<1x2x2x1x{q}>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x1x1x1x{q}>")
NEGATE = "tosa.negate %x, %z, %z : (tensor<1x2x2x1x{q}>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x1x{q}>"
MATMUL = ("tosa.matmul %y, %y, %z, %z : (tensor<1x2x2x{q}>, tensor<1x2x2x{q}>, tensor<1xi8>, tensor<1xi8>) -> "
          "tensor<1x2x2xi32>")


@pytest.mark.parametrize("line", [POOL, NEGATE, MATMUL], ids=["avg_pool2d", "negate", "matmul"])
def test_other_operators_with_zero_points_are_checked_too(line: str) -> None:
    for zero_point, is_right in ((-3, True), (3, False)):
        module = read_module(f"""func.func @main(%x: tensor<1x2x2x1x{X}>, %y: tensor<1x2x2x{X}>) {{
          %z = "tosa.const"() <{{values = dense<{zero_point}> : tensor<1xi8>}}> : () -> tensor<1xi8>
          %0 = {line.format(q=X)}
          return }}""")
        if is_right:
            verify(module)
        else:
            with pytest.raises(Problem, match=r"_zp is 3, .* zero point is -3"):
                verify(module)


@pytest.mark.parametrize("border, is_right", [(X, True), (Y, False), ("i8", True), ("!quant.any<i8>", False)])
def test_a_quantized_border_counts_as_what_it_surrounds(border: str, is_right: bool) -> None:
    module = read_module(f"""func.func @main(%x: tensor<2x{X}>) -> tensor<4x{X}> {{
      %p = tosa.const_shape {{values = dense<1> : tensor<2xindex>}} : () -> !tosa.shape<2>
      %c = "tosa.const"() <{{values = dense<-128> : tensor<1xi8>}}> : () -> tensor<1x{border}>
      %0 = tosa.pad %x, %p, %c : (tensor<2x{X}>, !tosa.shape<2>, tensor<1x{border}>) -> tensor<4x{X}>
      return %0 : tensor<4x{X}> }}""")
    if is_right:
        verify(module)
    else:
        with pytest.raises(Problem, match="the border is"):
            verify(module)


def test_tensors_quantized_in_two_ways_are_two_types() -> None:
    with pytest.raises(Problem, match="operand 0"):
        read_module(f"func.func @main(%x: tensor<2x{X}>) {{\n  %0 = tosa.identity %x : (tensor<2x{Y}>) -> tensor<2x{Y}>\n"
                    "  return }")
    with pytest.raises(Problem, match="returns"):
        verify(read_module(f"func.func @main(%x: tensor<2x{X}>) -> tensor<2x{Y}> {{ return %x : tensor<2x{X}> }}"))


# ---- code --------------------------------------------------------------------------------------------------------
def test_code_takes_and_gives_arrays_of_the_storage_type() -> None:
    module = convolution()
    x = np.array([[-3, 0], [7, 100]], np.int8).reshape(1, 2, 2, 1)
    expected = np.clip((x.astype(np.int32) + 3) * np.array([1, -2]) + 5, -128, 127).astype(np.int8)
    model = tosaic.load(print_module(module))
    assert np.array_equal(model(x), expected)
    assert np.array_equal(interpret(module, "main", [x])[0], expected)
    assert np.array_equal(interpret(rewritten(module), "main", [x])[0], expected)
    assert model.main.check([[x]]).agrees
    plain = tosaic.load(print_module(convolution(x="i8", w="i8", y="i8")))
    assert model.main.lower().show("loops") == plain.main.lower().show("loops")


def test_stripping_leaves_no_quantized_type_and_a_graph_that_verifies() -> None:
    stripped = strip_quantized(convolution())
    verify(stripped)
    assert "quant" not in print_module(stripped)
    assert equal_modules(stripped, convolution(x="i8", w="i8", y="i8"))
    assert strip_quantized(stripped) is stripped


def test_unsigned_storage_becomes_unsigned_integers() -> None:
    q = "!quant.uniform<u8:f32, 0.5:128>"
    text = f"""func.func @main(%x: tensor<3x{q}>) -> tensor<3x{X}> {{
      %m = "tosa.const"() <{{values = dense<1073741824> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %s = "tosa.const"() <{{values = dense<30> : tensor<1xi8>}}> : () -> tensor<1xi8>
      %i = "tosa.const"() <{{values = dense<128> : tensor<1xui8>}}> : () -> tensor<1xui8>
      %o = "tosa.const"() <{{values = dense<-3> : tensor<1xi8>}}> : () -> tensor<1xi8>
      %0 = tosa.rescale %x, %m, %s, %i, %o {{scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false,
        input_unsigned = true, output_unsigned = false}} : (tensor<3x{q}>, tensor<1xi32>, tensor<1xi8>, tensor<1xui8>,
        tensor<1xi8>) -> tensor<3x{X}>
      return %0 : tensor<3x{X}> }}"""
    x = np.array([0, 128, 255], np.uint8)
    assert tosaic.load(text)(x).tolist() == [-128, -3, 124]
    assert interpret(read_module(text), "main", [x])[0].tolist() == [-128, -3, 124]
    with pytest.raises(Problem, match=r"input_zp is 127, .* zero point is 128"):
        tosaic.load(text.replace("dense<128>", "dense<127>"))


def test_a_constant_of_unsigned_storage_may_be_written_as_signless_integers() -> None:
    text = """func.func @main() -> tensor<2x!quant.uniform<u8:f32, 0.5:128>> {
      %0 = "tosa.const"() <{values = dense<[-1, 255]> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<u8:f32, 0.5:128>>
      return %0 : tensor<2x!quant.uniform<u8:f32, 0.5:128>> }"""
    module = read_module(text)
    verify(module)
    assert interpret(module, "main", [])[0].tolist() == [255, 255]
    assert equal_modules(module, read_module(print_module(module)))
    assert tosaic.load(text)().tolist() == [255, 255]


def test_control_flow_variables_and_casts_hold_quantized_tensors() -> None:
    t = f"tensor<2x{X}>"
    text = f"""module {{
      tosa.variable @state = dense<-3> : tensor<2xi8>
      func.func @main(%c: tensor<i1>, %x: {t}) -> {t} {{
        %0 = builtin.unrealized_conversion_cast %x : {t} to tensor<2xi8>
        tosa.variable_write @state, %0 : tensor<2xi8>
        %1 = tosa.variable_read @state : tensor<2xi8>
        %2 = builtin.unrealized_conversion_cast %1 : tensor<2xi8> to {t}
        %3 = tosa.cond_if %c (%a = %2) : tensor<i1> ({t}) -> {t} {{
        ^bb0(%a: {t}):
          %4 = tosa.clamp %a {{min_val = -10 : i8, max_val = 10 : i8}} : ({t}) -> {t}
          tosa.yield %4 : {t}
        }} else {{
        ^bb0(%a: {t}):
          tosa.yield %a : {t}
        }}
        return %3 : {t}
      }}
    }}"""
    module = read_module(text)
    verify(module)
    again = read_module(print_module(module))
    verify(again)
    for flag, expected in ((True, [-10, 5]), (False, [-100, 5])):
        inputs = [np.array(flag), np.array([-100, 5], np.int8)]
        assert interpret(module, "main", inputs)[0].tolist() == expected
        assert tosaic.load(print_module(again))(*inputs).tolist() == expected


def test_a_variable_may_be_quantized() -> None:
    text = f"""module {{
      "tosa.variable"() <{{sym_name = "s", type = {X}, var_shape = dense<[2]> : tensor<1xindex>,
                           initial_value = dense<[1, 2]> : tensor<2xi8>}}> : () -> ()
      func.func @main(%x: tensor<2x{X}>) -> tensor<2x{X}> {{
        %0 = tosa.variable_read @s : tensor<2x{X}>
        tosa.variable_write @s, %x : tensor<2x{X}>
        return %0 : tensor<2x{X}>
      }}
    }}"""
    module = read_module(text)
    verify(module)
    assert equal_modules(module, read_module(print_module(module)))
    run = tosaic.load(text).main.compile(context=tosaic.Context("quantized"))
    assert run(np.array([3, 4], np.int8)).tolist() == [1, 2]
    assert run(np.array([5, 6], np.int8)).tolist() == [3, 4]


def test_calibrated_tensors_are_floats() -> None:
    t = "tensor<2x!quant.calibrated<f32<-1.0:2.0>>>"
    text = f"""func.func @main(%x: {t}) -> {t} {{
      %0 = tosa.add %x, %x : ({t}, {t}) -> {t}
      return %0 : {t} }}"""
    assert tosaic.load(text)(np.array([1, 5], np.float32)).tolist() == [2, 10]


def test_extents_that_follow_from_a_call_keep_the_quantization() -> None:
    module = read_module(f"""func.func @main(%x: tensor<?x{X}>) -> tensor<?x{X}> {{
      %0 = tosa.reverse %x {{axis = 0 : i32}} : (tensor<?x{X}>) -> tensor<?x{X}>
      return %0 : tensor<?x{X}> }}""")
    special = specialize(module, "main", [TensorType((3,), uniform("i8", F32, [0.5], [-3]))])
    verify(special)
    assert str(special.function().body.yields[0].type) == f"tensor<3x{X}>"
    assert tosaic.load(print_module(module))(np.array([1, 2, 3], np.int8)).tolist() == [3, 2, 1]


def test_a_flatbuffer_has_the_storage_types() -> None:
    module = read_file(write_module(convolution()), "a.tosa")
    verify(module)
    assert "quant" not in print_module(module)
    x = np.array([[-3, 0], [7, 100]], np.int8).reshape(1, 2, 2, 1)
    assert np.array_equal(interpret(module, "main", [x])[0], interpret(convolution(), "main", [x])[0])
