"""The three spellings of an operation, and those of control flow and variables, all give the same graph."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.standard.operators import StandardOp
from tosaic.lowering.dialects.tosa.activation import Clamp
from tosaic.lowering.dialects.tosa.control_flow import CondIf, WhileLoop
from tosaic.lowering.dialects.tosa.convolution import Conv2D
from tosaic.lowering.dialects.tosa.reduction import ArgMax
from tosaic.lowering.dialects.tosa.rescale import Rescale
from tosaic.lowering.dialects.tosa.resize import Resize
from tosaic.lowering.dialects.tosa.variable import Variable, VariableRead, VariableWrite
from tosaic.lowering.graph.graph import Function, Operation
from tosaic.lowering.graph.operator import Op, UnknownOp
from tosaic.lowering.graph.types import F32, I32, ShapeType, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.attributes import Number, Symbol
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .equality import equal_modules


def function(text: str) -> Function:
    module = read_module(text)
    verify(module)
    return module.functions[-1]


def in_function(operations: str, arguments: str = "%a: tensor<2x3xf32>") -> str:
    return f"func.func @f({arguments}) {{\n  {operations}\n  return\n}}"


def one(operations: str, arguments: str = "%a: tensor<2x3xf32>") -> Operation:
    """The last operation of a function's body."""
    return function(in_function(operations, arguments)).body.operations[-1]


ARGMAX = [
    '%0 = "tosa.argmax"(%a) <{axis = 1 : i32, nan_mode = #tosa.nan_mode<IGNORE>}> : (tensor<2x3xf32>) -> tensor<2xi32>',
    '%0 = "tosa.argmax"(%a) {axis = 1 : i32, nan_mode = "IGNORE"} : (tensor<2x3xf32>) -> tensor<2xi32>',
    "%0 = tosa.argmax %a {axis = 1 : i32, nan_mode = IGNORE} : (tensor<2x3xf32>) -> tensor<2xi32>",
    "%0 = tosa.argmax %a axis(1) nan_mode<IGNORE> : (tensor<2x3xf32>) -> tensor<2xi32>",
    "%0 = tosa.argmax %a axis(1 : i32) nan_mode<IGNORE> : (tensor<2x3xf32>) -> tensor<2xi32>",
]


@pytest.mark.parametrize("text", ARGMAX)
def test_argmax_is_the_same_in_each_form(text: str) -> None:
    op = one(text).op
    assert isinstance(op, ArgMax)
    assert (op.axis, op.nan_mode, op.to) == (1, "IGNORE", I32)
    assert equal_modules(read_module(in_function(ARGMAX[0])), read_module(in_function(text)))


@pytest.mark.parametrize("text", [
    '"tosa.argmax"(%a) <{axis = 1 : i32}> : (tensor<2x3xf32>) -> tensor<2xi32>',
    "tosa.argmax %a {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2xi32>",
    "tosa.argmax %a axis(1) : (tensor<2x3xf32>) -> tensor<2xi32>"])
def test_an_attribute_at_its_default_may_be_left_out(text: str) -> None:
    op = one(text).op
    assert isinstance(op, ArgMax)
    assert op.nan_mode == "PROPAGATE"


CONVOLUTION = [
    '"tosa.conv2d"(%x, %w, %b, %z, %z) <{acc_type = f32, dilation = array<i64: 1, 2>, local_bound = false, '
    "pad = array<i64: 1, 2, 3, 4>, stride = array<i64: 1, 1>}>",
    "tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 2>, pad = array<i64: 1, 2, 3, 4>, "
    "stride = array<i64: 1, 1>}",
    "tosa.conv2d %x, %w, %b, %z, %z pad([1, 2, 3, 4]) stride([1, 1]) dilation([1, 2]) acc_type(f32)",
]


@pytest.mark.parametrize("text", CONVOLUTION)
def test_lists_of_numbers_and_types_are_the_same_in_each_form(text: str) -> None:
    types = ("(tensor<1x4x4x2xf32>, tensor<3x2x2x2xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>)"
             " -> tensor<1x6x9x3xf32>")
    arguments = ("%x: tensor<1x4x4x2xf32>, %w: tensor<3x2x2x2xf32>, %b: tensor<3xf32>, %z: tensor<1xf32>")
    op = one(f"%0 = {text} : {types}", arguments).op
    assert isinstance(op, Conv2D)
    assert (op.pad, op.stride, op.dilation) == ((1, 2, 3, 4), (1, 1), (1, 2))
    assert op.acc_type == F32
    assert op.local_bound is False


@pytest.mark.parametrize("text", [
    "tosa.clamp %a {max_val = 3.40282347E+38 : f32, min_val = 0.000000e+00 : f32}",
    "tosa.clamp %a min_val(0.0 : f32) max_val(3.40282347E+38 : f32)",
    '"tosa.clamp"(%a) <{max_val = 0x7F7FFFFF : f32, min_val = 0x00000000 : f32}>'])
def test_bounds_take_the_type_of_the_operand(text: str) -> None:
    op = one(f"{text} : (tensor<2x3xf32>) -> tensor<2x3xf32>").op
    assert isinstance(op, Clamp)
    assert (op.min_val, op.max_val) == (0.0, float(np.finfo(np.float32).max))


@pytest.mark.parametrize("text", [
    "{input_unsigned = false, output_unsigned = true, per_channel = false, rounding_mode = SINGLE_ROUND, "
    "scale32 = true}",
    "scale32(true) rounding_mode<SINGLE_ROUND> per_channel(false) input_unsigned(false) output_unsigned(true)",
    '{input_unsigned = false, output_unsigned = true, per_channel = false, rounding_mode = "SINGLE_ROUND", '
    "scale32 = true, tosa.note = unit}"])
def test_bools_and_enumerations_are_the_same_in_each_form(text: str) -> None:
    arguments = "%x: tensor<4xi8>, %m: tensor<1xi32>, %s: tensor<1xi8>, %z: tensor<1xi8>"
    types = "(tensor<4xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<4xi8>"
    op = read_module(in_function(f"tosa.rescale %x, %m, %s, %z, %z {text} : {types}", arguments))
    rescale = op.functions[0].body.operations[0].op
    assert isinstance(rescale, Rescale)
    assert (rescale.scale32, rescale.rounding_mode, rescale.output_unsigned) == (True, "SINGLE_ROUND", True)


@pytest.mark.parametrize("mode", ["mode = BILINEAR", "mode = #tosa.resize_mode<BILINEAR>", 'mode = "BILINEAR"'])
def test_a_keyword_may_be_bare_long_or_a_string(mode: str) -> None:
    shape = "tosa.const_shape {values = dense<[2, 1, 2, 1]> : tensor<4xindex>} : () -> !tosa.shape<4>"
    zero = "tosa.const_shape {values = dense<0> : tensor<2xindex>} : () -> !tosa.shape<2>"
    op = one(f"%s = {shape} %z = {zero} tosa.resize %x, %s, %z, %z {{{mode}}} : (tensor<1x2x2x1xf32>, !tosa.shape<4>, "
             "!tosa.shape<2>, !tosa.shape<2>) -> tensor<1x3x3x1xf32>", "%x: tensor<1x2x2x1xf32>").op
    assert isinstance(op, Resize)
    assert op.mode == "BILINEAR"


@pytest.mark.parametrize("text", [
    '"tosa.const"() <{values = dense<[1, -2]> : tensor<2xi32>}> : () -> tensor<2xi32>',
    '"tosa.const"() {values = dense<[1, -2]> : tensor<2xi32>} : () -> tensor<2xi32>',
    '"tosa.const"() {value = dense<[1, -2]> : tensor<2xi32>} : () -> tensor<2xi32>',
    "tosa.const  values(dense<[1, -2]> : tensor<2xi32>) : () -> tensor<2xi32>",
    "tosa.const {values = dense<[1, -2]> : tensor<2xi32>} : () -> tensor<2xi32>"])
def test_a_constant_has_data_in_each_form(text: str) -> None:
    (value,) = one(f"%c = {text}").results
    assert value.type == TensorType((2,), I32)
    assert value.constant is not None
    assert value.constant.dtype == np.int32
    assert value.constant.tolist() == [1, -2]
    assert not value.constant.flags.writeable


@pytest.mark.parametrize(("text", "expected"), [
    ("tosa.const_shape  {values = dense<[3, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>", [3, 2]),
    ('"tosa.const_shape"() <{values = dense<[1, -1, 4]> : tensor<3xindex>}> : () -> !tosa.shape<3>', [1, -1, 4]),
    ("tosa.const_shape values(dense<7> : tensor<1xindex>) : () -> !tosa.shape<1>", [7]),
    ("tosa.const_shape  {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>", [])])
def test_a_shape_is_a_list_of_extents(text: str, expected: list[int]) -> None:
    (value,) = one(f"%s = {text}").results
    assert value.type == ShapeType(len(expected))
    assert value.constant is not None
    assert value.constant.dtype == np.int64
    assert value.constant.tolist() == expected


# Control flow

NEGATED = "%0 = tosa.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> tosa.yield %0 : tensor<2xf32>"
KEPT = "tosa.yield %x : tensor<2xf32>"
HEADER = "^bb0(%x: tensor<2xf32>):"
CONDITIONALS = [
    f"tosa.cond_if %c -> (tensor<2xf32>) {{ {NEGATED} }} else {{ {KEPT} }}",
    f"tosa.cond_if %c : tensor<i1> -> tensor<2xf32> {{ {NEGATED} }} else {{ {KEPT} }}",
    f"tosa.cond_if %c : tensor<i1> -> (tensor<2xf32>) {{ {NEGATED} }} else {{ {KEPT} }}",
    '"tosa.cond_if"(%c) ({ %0 = "tosa.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> '
    '"tosa.yield"(%0) : (tensor<2xf32>) -> () }, { "tosa.yield"(%x) : (tensor<2xf32>) -> () }) '
    ": (tensor<i1>) -> tensor<2xf32>",
]
CLOSED_CONDITIONALS = [
    f"tosa.cond_if %c (%x = %x) : tensor<i1> (tensor<2xf32>) -> tensor<2xf32> "
    f"{{ {HEADER} {NEGATED} }} else {{ {HEADER} {KEPT} }}",
    f"tosa.cond_if %c (%x = %x) : tensor<i1> (tensor<2xf32>) -> (tensor<2xf32>) {{ {NEGATED} }} else {{ {KEPT} }}",
    f'"tosa.cond_if"(%c, %x) ({{ {HEADER} {NEGATED} }}, {{ {HEADER} {KEPT} }}) '
    ": (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>",
]


@pytest.mark.parametrize("text", CONDITIONALS)
def test_the_regions_of_cond_if_may_use_values_around_them(text: str) -> None:
    operation = one(f"%r = {text}", "%c: tensor<i1>, %x: tensor<2xf32>")
    assert isinstance(operation.op, CondIf)
    assert [v.name for v in operation.operands] == ["c"]
    then, other = operation.regions
    assert (then.arguments, other.arguments) == ((), ())
    assert then.operations[0].operands == other.yields * 2


@pytest.mark.parametrize("text", CLOSED_CONDITIONALS)
def test_cond_if_binds_operands_to_the_arguments_of_both_regions(text: str) -> None:
    operation = one(f"%r = {text}", "%c: tensor<i1>, %x: tensor<2xf32>")
    assert len(operation.operands) == 2
    for region in operation.regions:
        assert len(region.arguments) == 1
        assert region.arguments[0] is not operation.operands[1]
    assert operation.regions[1].yields == operation.regions[1].arguments


@pytest.mark.parametrize("text", [
    """tosa.while_loop (%i = %n, %v = %x) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
      %4 = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tosa.yield %4 : tensor<i1>
    } do {
    ^bb0(%i: tensor<i32>, %v: tensor<2xf32>):
      %4 = tosa.add %v, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      tosa.yield %i, %4 : tensor<i32>, tensor<2xf32>
    }""",
    """"tosa.while_loop"(%n, %x) ({
    ^bb0(%i: tensor<i32>, %v: tensor<2xf32>):
      %4 = "tosa.greater"(%n, %i) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "tosa.yield"(%4) : (tensor<i1>) -> ()
    }, {
    ^bb0(%i: tensor<i32>, %v: tensor<2xf32>):
      %4 = "tosa.add"(%v, %v) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tosa.yield"(%i, %4) : (tensor<i32>, tensor<2xf32>) -> ()
    }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)"""])
def test_while_loop_has_a_condition_and_a_body_with_arguments_of_their_own(text: str) -> None:
    operation = one(f"%r:2 = {text}", "%n: tensor<i32>, %x: tensor<2xf32>")
    assert isinstance(operation.op, WhileLoop)
    condition, body = operation.regions
    assert [v.name for v in condition.arguments] == [v.name for v in body.arguments] == ["i", "v"]
    assert condition.arguments[0] is not body.arguments[0]
    assert condition.operations[0].operands == (operation.operands[0], condition.arguments[0])
    assert body.yields[0] is body.arguments[0]
    assert [v.name for v in operation.results] == ["r#0", "r#1"]


# Variables

@pytest.mark.parametrize(("text", "shape", "initial"), [
    ("tosa.variable @st = dense<-128> : tensor<1x2xi8>", (1, 2), [[-128, -128]]),
    ("tosa.variable @st : tensor<2xi8>", (2,), None),
    ("tosa.variable @st : tensor<?x2xi8>", (None, 2), None),
    ('"tosa.variable"() <{initial_value = dense<3> : tensor<1x2xi8>, sym_name = "st", type = i8, '
     "var_shape = dense<[1, 2]> : tensor<2xindex>}> : () -> ()", (1, 2), [[3, 3]]),
    ('"tosa.variable"() <{sym_name = "st", type = i8, var_shape = dense<> : tensor<0xindex>}> : () -> ()', (), None),
    ('"tosa.variable"() <{sym_name = "st", type = i8, var_shape = dense<-1> : tensor<1xindex>}> : () -> ()', (None,),
     None),
    ('"tosa.variable"() {name = "st", type = tensor<2xi8>} : () -> ()', (2,), None),
    ('"tosa.variable"() {name = "st", initial_value = dense<3> : tensor<1xi8>} : () -> ()', (1,), [3])])
def test_a_variable_is_declared_with_a_type_and_perhaps_a_value(text: str, shape: tuple[int | None, ...],
                                                                initial: list[int] | None) -> None:
    module = read_module(f"{text} func.func @f() {{ return }}")
    verify(module)
    op = module.declarations[0].op
    assert isinstance(op, Variable)
    assert (op.symbol, op.type.shape, op.type.element.name) == ("st", shape, "i8")
    assert (None if op.initial is None else op.initial.tolist()) == initial


@pytest.mark.parametrize(("read", "write"), [
    ("%0 = tosa.variable_read @st : tensor<2xi8>", "tosa.variable_write @st, %a : tensor<2xi8>"),
    ("%0 = tosa.variable.read @st : tensor<2xi8>", "tosa.variable.write @st, %a : tensor<2xi8>"),
    ('%0 = "tosa.variable_read"() <{name = "st"}> : () -> tensor<2xi8>',
     '"tosa.variable_write"(%a) <{name = "st"}> : (tensor<2xi8>) -> ()'),
    ('%0 = "tosa.variable.read"() {name = @st} : () -> tensor<2xi8>',
     '"tosa.variable.write"(%a) {name = @st} : (tensor<2xi8>) -> ()')])
def test_a_variable_is_read_and_written_by_its_name(read: str, write: str) -> None:
    body = function(f"tosa.variable @st : tensor<2xi8> {in_function(write + read, '%a: tensor<2xi8>')}").body
    first, second = body.operations
    assert isinstance(first.op, VariableWrite)
    assert isinstance(second.op, VariableRead)
    assert first.op.symbol == second.op.symbol == "st"
    assert second.op.type == second.results[0].type == TensorType((2,), body.arguments[0].tensor.element)


def test_a_number_may_name_a_variable() -> None:
    module = read_module("tosa.variable 1 = dense<0.0> : tensor<2xf32>\n"
                         + in_function("%0 = tosa.variable_read 1 : tensor<2xf32>"))
    verify(module)
    assert module.declarations[0].op.symbol == "1"  # type: ignore[attr-defined]


def test_a_variable_may_be_declared_inside_a_function() -> None:
    text = "tosa.variable @st = dense<1> : tensor<2xi8> %0 = tosa.variable_read @st : tensor<2xi8>"
    assert isinstance(function(in_function(text)).body.operations[0].op, Variable)


def test_a_quoted_symbol_may_hold_any_character() -> None:
    module = read_module(r'tosa.variable @"stream_9/st\C3\A4tes \22x\22" : tensor<2xi8>')
    assert module.declarations[0].op.symbol == 'stream_9/stätes "x"'  # type: ignore[attr-defined]


# What is not in the table

def test_an_unknown_operator_keeps_its_name_attributes_and_types() -> None:
    operation = one('%0:2 = "other.if"(%a) <{then_branch = @g, is_stateless = true}> {device = ""} '
                    ": (tensor<2x3xf32>) -> (tensor<1xf32>, tensor<2xf32>)")
    assert isinstance(operation.op, UnknownOp)
    assert operation.op.spelling == "other.if"
    assert operation.op.properties == {"then_branch": Symbol(("g",)), "is_stateless": True}
    assert operation.attributes == {"device": ""}
    assert len(operation.results) == 2


def test_an_unknown_operator_of_the_dialect_is_read_in_its_own_form() -> None:
    operation = one("%0 = tosa.from_the_future %a {level = 9 : i32} : (tensor<2x3xf32>) -> tensor<*xf32>")
    assert isinstance(operation.op, UnknownOp)
    assert operation.op.spelling == "tosa.from_the_future"
    assert operation.attributes == {"level": Number(9, I32)}


@pytest.mark.parametrize("text", ["func.call @g(%a) : (tensor<2x3xf32>) -> tensor<1xf32>",
                                  "call @g(%a) : (tensor<2x3xf32>) -> tensor<1xf32>",
                                  '"func.call"(%a) <{callee = @g}> : (tensor<2x3xf32>) -> tensor<1xf32>'])
def test_a_call_is_kept(text: str) -> None:
    module = read_module(f"func.func @f(%a: tensor<2x3xf32>) {{ %0 = {text} return }}\n"
                         "func.func private @g(tensor<2x3xf32>) -> tensor<1xf32>")
    verify(module)
    operation, = module.function("f").body.operations
    assert isinstance(operation.op, StandardOp)
    assert operation.op.spelling == "func.call"
    assert operation.op.properties == {"callee": Symbol(("g",))}


def test_the_region_of_an_unknown_operator_keeps_its_terminator() -> None:
    operation = one('"other.if"(%a) ({ "other.yield"(%a) : (tensor<2x3xf32>) -> () }) : (tensor<2x3xf32>) -> ()')
    (region,) = operation.regions
    assert region.yields == ()
    assert isinstance(region.operations[0].op, UnknownOp)


def test_a_conversion_between_equal_types_is_dropped() -> None:
    body = function(in_function(
        "%0 = builtin.unrealized_conversion_cast %a : tensor<2x3xf32> to tensor<2x3xf32>\n"
        '%1:2 = "builtin.unrealized_conversion_cast"(%0, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) '
        "-> (tensor<2x3xf32>, tensor<2x3xf32>)\n"
        "%2 = tosa.add %0, %1#1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>")).body
    (operation,) = body.operations
    assert operation.operands == body.arguments * 2


def test_an_unused_conversion_between_types_is_kept() -> None:
    operation = one("%0 = builtin.unrealized_conversion_cast %a : tensor<2x3xf32> to tensor<6x!quant.any<i8>>")
    assert isinstance(operation.op, UnknownOp)


def test_a_used_conversion_between_types_is_not_supported() -> None:
    text = in_function("%0 = builtin.unrealized_conversion_cast %a : tensor<2x3xf32> to tensor<2x3xi8>\n"
                       "%1 = tosa.abs %0 : (tensor<2x3xi8>) -> tensor<2x3xi8>")
    with pytest.raises(Problem, match="conversion from") as caught:
        read_module(text)
    assert caught.value.unsupported
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (2, 8)


@pytest.mark.parametrize("name", ["tosa.add", "tosa.abs", "tosa.matmul"])
def test_an_operation_knows_the_place_of_its_name(name: str) -> None:
    operands, types = ("%a", "(tensor<1x3x3xf32>)") if name == "tosa.abs" else (
        "%a, %a", "(tensor<1x3x3xf32>, tensor<1x3x3xf32>)")
    if name == "tosa.matmul":
        operands, types = "%a, %a, %z, %z", f"{types[:-1]}, tensor<1xf32>, tensor<1xf32>)"
    text = in_function(f"%result = {name} {operands} : {types} -> tensor<1x3x3xf32>",
                       "%a: tensor<1x3x3xf32>, %z: tensor<1xf32>")
    operation = read_module(text, "model.mlir").functions[0].body.operations[0]
    assert operation.position is not None
    assert (operation.position.line, operation.position.column, operation.position.width) == (2, 13, len(name))
    assert str(operation.position) == "model.mlir:2:13"
    result = operation.results[0].position
    assert result is not None
    assert (result.line, result.column, result.width) == (2, 3, len("%result"))


def test_every_operator_of_the_table_is_a_class_of_its_own() -> None:
    from tosaic.lowering.graph.operator import OPERATORS
    assert all(issubclass(c, Op) and (c.name == n or n in c.aliases) for n, c in OPERATORS.items())
