"""A graph prints as text that reads back to an equal graph, and prints again to the same text."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.data import Const
from tosaic.lowering.graph.graph import BlockBuilder, Function, Module, Value
from tosaic.lowering.graph.operator import OPERATORS, Op, UnknownOp
from tosaic.lowering.graph.types import F32, I4, I8, I32, I48, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.fields import field_attributes
from tosaic.lowering.text.printer import print_function, print_module
from tosaic.lowering.text.reader import read_module

from .equality import equal_modules

T = TensorType((2, 3), F32)
STREAMING = """
module @stream attributes {tfl.description = "made \\22by hand\\22\\0A", tf.versions = {a = [], b = 3 : i32, unit}} {
  tosa.variable @"stream/states" = dense<-128> : tensor<1x4xi8>
  tosa.variable @count : tensor<i32>
  func.func @main(%input: tensor<1x2xi8> {tf.path = ["input"]}) -> (tensor<1x4xi8> {tf.path = ["out"]}, tensor<1xi4>)
      attributes {tf.entry = {inputs = "x:0"}} {
    %0 = tosa.const_shape {values = dense<[0, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %1 = tosa.const_shape {values = dense<[1, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %2 = "tosa.const"() <{values = dense<[[1, 2, 3, 4]]> : tensor<1x4xi8>}> : () -> tensor<1x4xi8> loc("w.py":3:4)
    %3 = tosa.variable_read @"stream/states" : tensor<1x4xi8> loc(fused["a", "b"])
    %4 = tosa.slice %3, %0, %1 : (tensor<1x4xi8>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x2xi8>
    %5 = tosa.concat %4, %input {axis = 1 : i32, x.note = true} : (tensor<1x2xi8>, tensor<1x2xi8>) -> tensor<1x4xi8>
    tosa.variable_write @"stream/states", %5 : tensor<1x4xi8>
    %6:2 = "tf.Unknown"(%5, %2) <{f = @"g g", a = dense<[1.5, 0x7FC00000]> : tensor<2xf32>}> {tf.x} :
        (tensor<1x4xi8>, tensor<1x4xi8>) -> (tensor<1x4xi8>, tensor<?xf32>)
    %4bit = "tosa.const"() <{values = dense<-3> : tensor<1xi4>}> : () -> tensor<1xi4>
    return %6#0, %4bit : tensor<1x4xi8>, tensor<1xi4>
  }
  func.func private @"g g"(%arg0: tensor<f32>) attributes {a.b} {
    return
  }
}
"""
CONTROL = """
func.func @main(%arg0: tensor<i32>, %arg1: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
  %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %0:2 = tosa.while_loop (%arg2 = %one, %arg3 = %arg1) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
    %1 = tosa.greater %arg0, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %1 : tensor<i1>
  } do {
  ^bb0(%arg2: tensor<i32>, %arg3: tensor<2xf32>):
    %1 = tosa.greater %arg2, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = tosa.cond_if %1 : tensor<i1> -> tensor<2xf32> {
      %4 = tosa.add %arg3, %arg1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      tosa.yield %4 : tensor<2xf32>
    } else {
      %4 = tosa.abs %arg3 : (tensor<2xf32>) -> tensor<2xf32>
      tosa.yield %4 : tensor<2xf32>
    }
    %3 = tosa.add %arg2, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %3, %2 : tensor<i32>, tensor<2xf32>
  }
  %1 = tosa.cond_if %c (%x = %0#1) : tensor<i1> (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%x: tensor<2xf32>):
    tosa.yield %x : tensor<2xf32>
  } else {
  ^bb0(%x: tensor<2xf32>):
    %5 = tosa.abs %x : (tensor<2xf32>) -> tensor<2xf32>
    tosa.yield %5 : tensor<2xf32>
  }
  return %0#0, %1 : tensor<i32>, tensor<2xf32>
}
""".replace("  %1 = tosa.cond_if %c", '  %c = tosa.equal %0#0, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>\n'
            "  %1 = tosa.cond_if %c")


@pytest.mark.parametrize("text", [STREAMING, CONTROL, "module {}", "func.func @f() { return }"])
def test_a_module_prints_as_text_that_reads_back_and_prints_the_same(text: str) -> None:
    module = read_module(text)
    verify(module)
    printed = print_module(module)
    again = read_module(printed, "printed")
    assert equal_modules(module, again)
    assert print_module(again) == printed
    assert printed.isascii()


def test_names_of_values_are_kept() -> None:
    printed = print_module(read_module(CONTROL))
    for part in ("%0:2 = ", "(%arg0: tensor<i32>, %arg1: tensor<2xf32>)", "^bb0(%arg2: tensor<i32>", "%one = ", "%0#1",
                 '%4 = "tosa.add"(%arg3, %arg1)', '%4 = "tosa.abs"(%arg3)'):
        assert part in printed


def test_a_module_prints_in_this_form() -> None:
    text = """module {
  "tosa.variable"() <{sym_name = "n", type = i32, var_shape = dense<> : tensor<0xindex>, initial_value = dense<0> : tensor<i32>}> : () -> ()
  func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>) {
    %0 = "tosa.clamp"(%a) <{min_val = 0.0 : f32, max_val = 6.0 : f32, nan_mode = #tosa.nan_mode<IGNORE>}> : (tensor<2xf32>) -> tensor<2xf32>
    %1 = "tosa.variable_read"() <{name = "n"}> : () -> tensor<i32>
    %2 = "tosa.cond_if"(%c) ({
      "tosa.yield"(%0) : (tensor<2xf32>) -> ()
    }, {
      %3 = "tosa.abs"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      "tosa.yield"(%3) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    return %2, %1 : tensor<2xf32>, tensor<i32>
  }
}
""".replace("%a: tensor<2xf32>)", "%a: tensor<2xf32>, %c: tensor<i1>)")  # noqa: E501
    assert print_module(read_module(text)) == text


def test_a_function_prints_alone() -> None:
    module = read_module(STREAMING)
    text = print_function(module.functions[1])
    assert text == 'func.func private @"g g"(%arg0: tensor<f32>) attributes {a.b} {\n  return\n}\n'
    assert read_module(print_function(module.functions[0])).functions[0].name == "main"


def test_constants_are_shortened_to_be_looked_at() -> None:
    block = BlockBuilder()
    (value,) = block.add(Const(np.arange(1000, dtype=np.int32)))
    (small,) = block.add(Const(np.arange(4, dtype=np.int32)))
    function = Function("f", block.finish(value, small), (value.type, small.type))
    assert "dense_resource<__elided__>" in print_function(function, elide=16)
    assert "dense<[0, 1, 2, 3]>" in print_function(function, elide=16)
    assert "elided" not in print_module(Module((function,)))


def test_values_of_the_same_name_print_under_names_of_their_own() -> None:
    block = BlockBuilder()
    x = block.argument(T, "x")
    values = [x, block.argument(T, "x"), block.argument(T, "a b"), block.argument(T, "3x"), block.argument(T, "")]
    add = OPERATORS["tosa.add"]()
    for name in ("x", "x_1", "7", "7", "a#0", "%", "é"):
        values += block.add(add, values[0], values[-1], name=name)
    module = Module((Function("f", block.finish(*values), (T,) * len(values)),))
    verify(module)
    printed = print_module(module)
    again = read_module(printed)
    assert equal_modules(module, again)
    assert print_module(again) == printed


def test_a_broken_graph_prints_too() -> None:
    """Printing is for looking at what `verify` refuses."""
    block = BlockBuilder()
    block.operations += BlockBuilder().operations
    stranger = Value("stranger", T)
    (result,) = block.add(OPERATORS["tosa.abs"](), stranger)
    assert '"tosa.abs"(%stranger)' in print_function(Function("f", block.finish(result), (T,)))


@pytest.mark.parametrize(("element", "values"), [(I4, [-8, 7]), (I8, [-128, 127]), (I48, [-2 ** 47, 2 ** 47 - 1])])
def test_the_element_type_of_a_constant_is_kept(element: object, values: list[int]) -> None:
    text = (f'func.func @f() -> tensor<2x{element}> {{ %0 = "tosa.const"() <{{values = dense<{values}> : '
            f"tensor<2x{element}>}}> : () -> tensor<2x{element}> return %0 : tensor<2x{element}> }}")
    module = read_module(text)
    verify(module)
    printed = print_module(module)
    assert f"dense<{values}> : tensor<2x{element}>" in printed
    assert equal_modules(module, read_module(printed))


SAMPLES = {"i32": 1, "i64": 1, "f32": 1.5, "f64": 1.5, "element": 1.5, "bool": True, "array<i64>": (1, 2),
           "array<i32>": (1, 2), "type": I32, "tensor": T, "string": "text", "symbol": "name",
           "dense": np.zeros((2, 3), np.float32), "nan_mode": "IGNORE", "resize_mode": "BILINEAR",
           "rounding_mode": "DOUBLE_ROUND", "block_size": "BLOCK_SIZE_32"}


@pytest.mark.parametrize("operator", sorted(set(OPERATORS.values()), key=lambda c: c.name), ids=lambda c: c.name)
def test_every_operator_of_the_table_prints_and_reads_back(operator: type[Op]) -> None:
    """With each of its fields set to a value that is not its default."""
    fields = {f.name: SAMPLES.get(f.metadata["mlir"], "OTHER") for f in dataclasses.fields(operator)  # type: ignore[arg-type]
              if f.metadata["mlir"] != "result"}
    results = {f.name: (T,) if f.metadata["result"] is None else F32 for f in dataclasses.fields(operator)  # type: ignore[arg-type]
               if f.metadata["mlir"] == "result"}
    op = operator(**fields, **results)
    block = BlockBuilder()
    x = block.argument(T)
    regions = [BlockBuilder().finish() for _ in range(op.regions)]
    has_operand = not {"values", "initial"} & set(fields) and op.variable_effect != "read"
    types = () if op.variable_effect in ("declare", "write") else (T,)
    block.add(op, *(x,) * has_operand, regions=regions, types=types)
    module = Module((Function("f", block.finish(), ()),))
    again = read_module(print_module(module))
    assert equal_modules(module, again)
    found = again.functions[0].body.operations[0]
    assert not isinstance(found.op, UnknownOp)
    assert field_attributes(found.op, (T,), types).keys() == field_attributes(op, (T,), types).keys()
