"""What `verify` refuses, each with the place of the fault, and that it takes what is sound."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.data import Const
from tosaic.lowering.graph.graph import Block, BlockBuilder, Function, Module, Operation, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F32, I1, I32, TensorType, Type
from tosaic.lowering.graph.verify import compatible, verify
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

T = TensorType((2,), F32)
X = "%x: tensor<2xf32>"
ABS = "tosa.abs %x : (tensor<2xf32>) -> tensor<2xf32>"
ADD = OPERATORS["tosa.add"]
CONDITION = "%c = tosa.equal %x, %x : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>"


def nested(depth: int) -> str:
    """Conditionals inside each other, `depth` deep."""
    inner = "tosa.yield %x : tensor<2xf32>"
    for n in range(depth):
        inner = (f"%r{n} = tosa.cond_if %c : tensor<i1> -> tensor<2xf32> {{ {inner} }} else {{ tosa.yield %x : "
                 f"tensor<2xf32> }} tosa.yield %r{n} : tensor<2xf32>")
    return f"func.func @f(%c: tensor<i1>, {X}) {{ {inner.rpartition(' tosa.yield')[0] or ABS} return }}"


SOUND = [
    "", "module {}", f"func.func @f({X}) {{ {ABS} return }}", nested(0), nested(1), nested(6),
    "func.func @f(%x: tensor<?xf32>) -> tensor<2xf32> { return %x : tensor<?xf32> }",
    "func.func @f(%x: tensor<?xf32>) { tosa.abs %x : (tensor<?xf32>) -> tensor<3xf32> return }",
    "func.func @f(%x: tensor<3xf32>) { tosa.abs %x : (tensor<3xf32>) -> tensor<?xf32> return }",
    'func.func @f(%x: !tf_type.resource) { "tf.X"(%x) : (!tf_type.resource) -> tensor<0x1x1x1x1x1x1x1xi8> return }',
    "func.func @f() { tosa.variable @v : tensor<i8> return } func.func @g() { tosa.variable @v : tensor<i8> return }",
    "tosa.variable @v : tensor<?xf32> func.func @f() { %0 = tosa.variable_read @v : tensor<2xf32> return }",
    f"func.func @f({X}) {{ tosa.abs %x {{tf.note = 1 : i8, _mark}} : (tensor<2xf32>) -> tensor<2xf32> return }}",
    "func.func @f(%x: tensor<2147483647xi8>, %y: tensor<1x1x1x1x1x1xi8>) { return }",
]


@pytest.mark.parametrize("text", SOUND)
def test_a_sound_module_is_taken(text: str) -> None:
    verify(read_module(text))


FAULTS = [
    ("func.func @f() { return }\nfunc.func @f() { return }", 2, 11, "@f is defined twice"),
    ("tosa.variable @f : tensor<i8>\nfunc.func @f() { return }", 2, 11, "@f is defined twice"),
    ("tosa.variable @f : tensor<i8>\ntosa.variable @f : tensor<i8>", 2, 1, "@f is defined twice"),
    (f"func.func @f({X}) -> tensor<2xf32> {{\n  return\n}}", 2, 3, "@f returns 0 values, but has 1 results"),
    (f"func.func @f({X}) -> tensor<3xf32> {{\n  return %x : tensor<2xf32>\n}}", 2, 3,
     "@f returns tensor<2xf32> as result 0, which is declared as tensor<3xf32>"),
    (f"func.func @f({X}) {{\n  %0 = tosa.abs %x : (tensor<2xf32>) -> tensor<3xf32>\n  return\n}}", 2, 8,
     "the result of tosa.abs is tensor<2xf32>, but tensor<3xf32> is declared"),
    (f"func.func @f({X}) {{\n  %0 = tosa.abs %x : (tensor<2xf32>) -> tensor<2xi32>\n  return\n}}", 2, 8,
     "the result of tosa.abs is tensor<2xf32>, but tensor<2xi32> is declared"),
    (f"func.func @f({X}) {{\n  %0:2 = tosa.abs %x : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)\n  return\n}}",
     2, 10, "tosa.abs has 1 results, 2 are declared"),
    (f"func.func @f({X}) {{\n  tosa.add %x : (tensor<2xf32>) -> tensor<2xf32>\n  return\n}}", 2, 3, "operand"),
    (f"func.func @f({X}) {{\n  tosa.abs %x {{round = true}} : (tensor<2xf32>) -> tensor<2xf32>\n  return\n}}", 2, 3,
     "tosa.abs has no attribute round"),
    (f"func.func @f({X}) {{\n  tosa.reduce_sum %x {{axis = 1 : i32}} : (tensor<2xf32>) -> tensor<2xf32>\n  return\n}}",
     2, 3, "axis 1"),
    ("func.func @f() {\n  %0 = tosa.variable_read @v : tensor<?xi8>\n  return\n}", 2, 8,
     "variable @v is declared elsewhere, and read as tensor<?xi8>: its shape must be known"),
    (f"func.func @f({X}) {{\n  tosa.variable_write @v, %x : tensor<2xf32>\n  return\n}}", 2, 3,
     "variable @v is not declared"),
    ("tosa.variable @v : tensor<2xi8> func.func @f() {\n  %0 = tosa.variable_read @v : tensor<i8>\n  return\n}", 2, 8,
     "variable @v is tensor<2xi8>, here it is tensor<i8>"),
    (f"tosa.variable @v : tensor<2xi8> func.func @f({X}) {{\n  tosa.variable_write @v, %x : tensor<2xf32>\n  return }}",
     2, 3, "variable @v is tensor<2xi8>, here it is tensor<2xf32>"),
    ("tosa.variable @v : tensor<i8> func.func @f() {\n  tosa.variable @v : tensor<i8>\n  return\n}", 2, 3,
     "variable @v is declared twice"),
    ("func.func @f() { tosa.variable @v : tensor<i8>\n  tosa.variable @v : tensor<i8>\n  return\n}", 2, 3,
     "variable @v is declared twice"),
    ("func.func @f() { tosa.variable @v : tensor<i8> return }\nfunc.func @g() { tosa.variable @v : tensor<i4> return }",
     2, 18, "variable @v is tensor<i8>, here it is tensor<i4>"),
    (nested(7).replace("func.func", "\nfunc.func", 1), 2, None, "nested"),
    (f"func.func @f(\n  %x: tensor<{'1x' * 33}i8>) {{ return }}", 2, 3, "%x has rank 33, there may be 32 axes"),
    ("func.func @f(\n  %x: tensor<2x0xi8>) { return }", 2, 3, "%x has no elements"),
    ("func.func @f(\n  %x: tensor<2147483648xi8>) { return }", 2, 3, "2147483648 bytes"),
    ("func.func @f(\n  %x: tensor<65536x65536x65536x65536xf32>) { return }", 2, 3, "bytes"),
    ("func.func @f(\n  %x: tensor<*xi8>) { return }", 2, 3, "rank of %x is not known"),
    ("func.func @f(\n  %x: !tosa.shape<65>) { return }", 2, 3, "%x has 65 extents, there may be 64"),
    (f"func.func @f({X}) {{\n  %0 = tosa.cond_if %x -> () {{ tosa.yield }} else {{ tosa.yield }}\n  return }}".replace(
        "%0 = ", ""), 2, 3, "condition must be a tensor of i1"),
    ("func.func @f(%c: tensor<2xi1>) {\n  tosa.cond_if %c -> () { tosa.yield } else { tosa.yield }\n  return }", 2, 3,
     "condition must have one element"),
    (f"func.func @f(%c: tensor<i1>, {X}) {{\n  %0 = tosa.cond_if %c -> tensor<2xf32> {{ "
     "tosa.yield %x : tensor<2xf32> } else { tosa.yield %c : tensor<i1> }\n  return }", 1, 14,
     "region for false yields"),
    (f"func.func @f(%c: tensor<i1>, {X}) {{\n  %0 = tosa.cond_if %c -> tensor<3xf32> {{ "
     "tosa.yield %x : tensor<2xf32> } else { tosa.yield %x : tensor<2xf32> }\n  return }", 2, 8,
     "is tensor<2xf32>, but tensor<3xf32> is declared"),
    (f'func.func @f(%c: tensor<i1>, {X}) {{\n  "tosa.cond_if"(%c, %x) ({{ "tosa.yield"() : () -> () }}, '
     '{ "tosa.yield"() : () -> () }) : (tensor<i1>, tensor<2xf32>) -> ()\n  return }', 2, 3, "arguments"),
    (f"func.func @f({X}) {{\n  %0 = tosa.while_loop (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {{ tosa.yield %a : "
     "tensor<2xf32> } do { ^bb0(%a: tensor<2xf32>): tosa.yield %a : tensor<2xf32> }\n  return }", 2, 8, "i1"),
    (f"func.func @f(%c: tensor<i1>, {X}) {{\n  %0 = tosa.while_loop (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {{ "
     "tosa.yield %c : tensor<i1> } do {\n  ^bb0(%a: tensor<3xf32>): tosa.yield %x : tensor<2xf32> }\n  return }", 3, 8,
     "arguments of the body"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), FAULTS)
def test_a_fault_is_refused_where_it_is(text: str, line: int | None, column: int | None, message: str) -> None:
    module = read_module(text)
    with pytest.raises(Problem) as caught:
        verify(module)
    assert message in caught.value.message
    position = caught.value.position
    assert position is not None
    assert line in (None, position.line)
    assert column in (None, position.column)


# Graphs that no text gives

def module_of(block: Block, *types: Type) -> Module:
    return Module((Function("f", block, types),))


def refused(module: Module, message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        verify(module)
    assert caught.value.kind == "ssa"


def test_a_value_must_be_defined_before_it_is_used() -> None:
    builder = BlockBuilder()
    x = builder.argument(T, "x")
    (y,) = builder.add(ADD(), x, x, name="y")
    builder.add(ADD(), x, y)
    first, second = builder.operations
    refused(module_of(Block((x,), (second, first), ())), "operand 1, %y, is not defined")
    verify(module_of(Block((x,), (first, second), (y,)), T))


def test_what_a_block_gives_back_must_be_defined() -> None:
    refused(module_of(Block((), (), (Value("y", T),)), T), "%y, is not defined")


def test_a_value_has_one_definition() -> None:
    builder = BlockBuilder()
    x = builder.argument(T, "x")
    builder.add(ADD(), x, x)
    (operation,) = builder.operations
    refused(module_of(Block((x,), (operation, operation), ())), "is defined twice")
    refused(module_of(Block((x, x), (), ())), "is defined twice")
    refused(module_of(Block((x,), (dataclasses.replace(operation, results=(x,)),), ())), "is defined twice")


def test_a_value_of_a_region_is_not_seen_behind_it() -> None:
    builder = BlockBuilder()
    condition, x = builder.argument(TensorType((), I1), "c"), builder.argument(T, "x")
    inner = BlockBuilder("i")
    (hidden,) = inner.add(ADD(), x, x, name="hidden")
    region = inner.finish(hidden)
    other = BlockBuilder("o").finish(x)
    (result,) = builder.add(OPERATORS["tosa.cond_if"](), condition, regions=(region, other), types=(T,))
    verify(module_of(builder.finish(result), T))
    refused(module_of(builder.finish(hidden), T), "%hidden, is not defined")


def test_a_value_of_another_function_is_not_seen() -> None:
    one = BlockBuilder()
    x = one.argument(T, "x")
    block = one.finish(x)
    other = Function("g", Block((), (), (x,)), (T,))
    refused(Module((Function("f", block, (T,)), other)), "%x, is not defined")


def test_data_of_a_constant_must_have_the_declared_type() -> None:
    operation = Operation(Const(np.zeros(3, np.float32)), (), (Value("c", T),))
    with pytest.raises(Problem, match=r"tosa\.const is tensor<3xf32>, but tensor<2xf32>"):
        verify(module_of(Block((), (operation,), ())))


def test_attributes_of_arguments_are_as_many_as_the_arguments() -> None:
    function = Function("f", Block((), (), ()), (), argument_attributes=({},))
    with pytest.raises(Problem, match="1 dictionaries for 0 arguments"):
        verify(Module((function,)))


@pytest.mark.parametrize(("a", "b", "expected"), [
    (T, T, True), (T, TensorType((2,), I32), False), (T, TensorType((3,), F32), False),
    (T, TensorType((None,), F32), True), (TensorType(None, F32), T, True), (T, TensorType((2, 1), F32), False)])
def test_types_are_compatible_where_they_can_be_equal(a: Type, b: Type, expected: bool) -> None:
    assert compatible(a, b) is compatible(b, a) is expected
