"""What the dialects' design document writes is read to the one normal form, which prints as TensorFlow's."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tf.operator import TensorFlowOp
from tosaic.lowering.dialects.tf.types import tensorflow_tensor, tensorflow_type
from tosaic.lowering.dialects.tf_executor.operators import (
    Enter,
    Exit,
    Island,
    Merge,
    NextIterationSink,
    NextIterationSource,
    Switch,
    SwitchN,
    is_receive,
    is_send,
    wrapped,
)
from tosaic.lowering.dialects.tf_executor.types import CONTROL, INDEX_TYPE, TOKEN
from tosaic.lowering.graph.foreign import callees, find
from tosaic.lowering.graph.graph import Function, Module, Operation
from tosaic.lowering.graph.types import F32, I1, I32, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from ..text.equality import equal_modules
from .cases import DOCUMENT, in_graph

UNKNOWN = TensorType(None, F32)
NUMBER = TensorType((), I32)


def document(*names: str) -> Module:
    return read_module("".join((DOCUMENT / f"{n}.mlir").read_text("utf-8") for n in names))


def graph_of(function: Function) -> list[Operation]:
    return list(function.body.operations[0].regions[0].operations)


def node(text: str) -> Operation:
    """The last operation of a graph of these."""
    module = read_module(in_graph(text))
    return module.functions[0].body.operations[0].regions[0].operations[-1]


@pytest.mark.parametrize("names", [("function", "functions"), ("islands",), ("loop",), ("other_spellings",)])
def test_a_text_of_the_document_is_sound_and_prints_in_tensorflows_form(names: tuple[str, ...]) -> None:
    module = document(*names)
    verify(module)
    text = print_module(module)
    again = read_module(text)
    verify(again)
    assert equal_modules(module, again)
    assert print_module(again) == text
    assert not any(sugar in text for sugar in ("tf.Add %", ": i32", "“", "”", "splat", "SwitchN_", "tf_executor<"))


def test_operators_without_quotes_are_operations_of_tensorflow() -> None:
    added, three, mul, condition, value = document("function", "functions").functions[0].body.operations
    assert all(isinstance(o.op, TensorFlowOp) for o in (added, three, mul, condition, value))
    assert [o.op.spelling for o in (added, three, mul)] == ["tf.Add", "tf.Const", "tf.Mul"]  # type: ignore[attr-defined]
    assert added.results[0].type == UNKNOWN
    assert three.results[0].constant is not None and three.results[0].constant == np.float32(3)
    assert mul.operands == (added.operands[0], three.results[0])


def test_a_function_for_a_condition_becomes_a_call() -> None:
    *_, condition, value = document("function").functions[0].body.operations
    assert callees(condition) == {"f": ("cond_func",)}
    assert callees(value) == {"then_branch": ("func_foo",), "else_branch": ("func_bar",)}
    assert condition.results[0].type == TensorType((), I1)
    assert value.operands == (condition.results[0], *condition.operands)
    assert find(value, "is_stateless") is False


def test_the_loop_is_in_normal_form() -> None:
    (function,) = document("loop").functions
    assert function.arguments[0].type == NUMBER == function.result_types[0]
    enter, source, merge, add, test, switch, sink, exit_ = graph_of(function)
    assert isinstance(enter.op, Enter) and enter.op.frame_name == "" and enter.op.parallel_iterations == 10
    assert isinstance(source.op, NextIterationSource) and [v.type for v in source.results] == [NUMBER, TOKEN, CONTROL]
    assert isinstance(merge.op, Merge) and [v.type for v in merge.results] == [NUMBER, INDEX_TYPE, CONTROL]
    assert isinstance(switch.op, Switch) and switch.operands == (add.results[0], test.results[0])
    assert isinstance(sink.op, NextIterationSink) and sink.operands == (source.results[1], switch.results[1])
    assert isinstance(exit_.op, Exit) and exit_.operands == (switch.results[0],)


def test_numbers_as_operands_are_constants_inside_the_island() -> None:
    (function,) = document("loop").functions
    add = graph_of(function)[3]
    assert isinstance(add.op, Island) and wrapped(add) is None
    constant, operation = add.regions[0].operations
    assert constant.results[0].constant is not None and constant.results[0].constant == -1
    assert constant.results[0].type == NUMBER
    assert operation.operands[1] is constant.results[0]
    assert add.regions[0].yields == operation.results


def test_operators_that_no_dialect_has_are_read_and_refused() -> None:
    module = document("graph")
    first = module.functions[0].body.operations[1].regions[0].operations[0]
    assert [v.type for v in first.results] == [UNKNOWN, CONTROL]
    with pytest.raises(Problem, match="tf_executor has no operation opA"):
        verify(module)


def test_islands_capture_what_they_read() -> None:
    trigger, first, second = graph_of(document("islands").functions[0])
    assert first.operands == second.operands == trigger.results
    assert [v.type for v in first.results] == [UNKNOWN, CONTROL]
    assert len(first.regions[0].operations) == 2
    assert wrapped(second) is second.regions[0].operations[0]


def test_other_spellings_of_operators_and_types_are_read() -> None:
    (function,) = document("other_spellings").functions
    assert function.arguments[2].type == tensorflow_tensor((2,), tensorflow_type("string"))
    switch, send, receive, *_ = graph_of(function)
    assert isinstance(switch.op, SwitchN) and switch.op.num_outs == 2
    assert is_send(send) and is_receive(receive) and not is_send(receive) and not is_receive(switch)
    inner = wrapped(send)
    assert inner is not None and find(inner, "tensor_name") == "message"
    assert send.operands == (switch.results[2],) and inner.operands == (function.arguments[0],)


@pytest.mark.parametrize(("text", "swapped"), [
    ("%f, %t, %c = tf_executor.Switch %x, %p : tensor<3xf32>", False),
    ("%f, %t, %c = tf_executor.Switch %p, %x : tensor<3xf32>", True),
    ("%f, %t, %c = tf_executor.Switch %p, %x : (tensor<i1>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)", True),
    ("%f, %t, %c = tf_executor.Switch %x, %p : (tensor<3xf32>, tensor<i1>) -> "
     "(tensor<3xf32>, tensor<3xf32>, !tf_executor.control)", False)])
def test_a_switch_has_its_data_first(text: str, swapped: bool) -> None:
    switch = node(text)
    assert [v.name for v in switch.operands] == ["x", "p"]
    assert [v.name for v in switch.results] == ["f", "t", "c"]


@pytest.mark.parametrize("text", [
    "%m, %c = tf_executor.Merge %x, %x : tensor<3xf32>", "%m, %k, %c = tf_executor.Merge %x, %x : tensor<3xf32>",
    "%m, %c = tf_executor.Merge %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>",
    "%m, %c = tf_executor.Merge %x, %x : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, !tf_executor.control)",
    "%m, %k, %c = tf_executor.Merge %x, %x : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>)"])
def test_a_merge_has_three_results(text: str) -> None:
    merge = node(text)
    assert [v.type for v in merge.results] == [TensorType((3,), F32), INDEX_TYPE, CONTROL]
    assert (merge.results[0].name, merge.results[2].name) == ("m", "c")


@pytest.mark.parametrize(("text", "frame", "iterations", "constant"), [
    ("", "", 10, False), (' frame "f"', "f", 10, False), (' frame "a/b" parallel_iterations 42 constant ', "a/b", 42, True),
    (" constant", "", 10, True)])
def test_each_option_of_an_enter_may_be_left_out(text: str, frame: str, iterations: int, constant: bool) -> None:
    enter = node(f"%e, %c = tf_executor.Enter %x{text} : tensor<3xf32>").op
    assert isinstance(enter, Enter)
    assert (enter.frame_name, enter.parallel_iterations, enter.is_constant) == (frame, iterations, constant)


@pytest.mark.parametrize("text", [
    '%e, %c = tf_executor.Enter %x : tensor<3xf32> {name = "f"}',
    '%e, %c = tf_executor.Enter %x {frame_name = "f"} : tensor<3xf32>',
    '%e, %c = "tf_executor.Enter"(%x) <{frame_name = "f", is_constant = false, parallel_iterations = 10 : i64}> : '
    "(tensor<3xf32>) -> (tensor<3xf32>, !tf_executor.control)"])
def test_a_frame_may_be_an_attribute(text: str) -> None:
    enter = node(text)
    assert isinstance(enter.op, Enter) and enter.op.frame_name == "f"
    assert enter.attributes == {}


def test_a_switch_of_two_booleans_keeps_their_order() -> None:
    switch = node('%q, %d = tf_executor.island wraps "tf.LogicalNot"(%p) : (tensor<i1>) -> tensor<i1>\n'
                  "%f, %t, %c = tf_executor.Switch %q, %p : tensor<i1>")
    assert [v.name for v in switch.operands] == ["q", "p"]


@pytest.mark.parametrize("text", ["tf.Add %x, 1 : tensor<3xf32>", "tf.Add 1, %x : tensor<3xf32>",
                                  "tf.Add %x, 1.0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>"])
def test_a_number_has_the_type_of_the_operand_that_it_is(text: str) -> None:
    island = node(f"%r, %c = tf_executor.island wraps {text}")
    constant, operation = island.regions[0].operations
    assert constant.results[0].constant is not None
    assert np.array_equal(constant.results[0].constant, np.ones(3, np.float32))
    assert constant.results[0] in operation.operands


def test_a_number_beside_a_tensor_of_unknown_shape_has_no_axes() -> None:
    text = "func f(%x : tensor<?xi32>) -> tensor<?xi32> {\n%y = tf.Add %x, -1 : tensor<?xi32>\nreturn %y : tensor<?xi32>\n}"
    constant, _ = read_module(text).functions[0].body.operations
    assert constant.results[0].type == NUMBER


def test_scalars_stay_scalars_in_other_texts() -> None:
    module = read_module("func.func @f(%x: i32) -> i32 { return %x : i32 }")
    assert str(module.functions[0].arguments[0].type) == "i32"
    assert not isinstance(module.functions[0].arguments[0].type, TensorType)


def test_curly_quotes_inside_a_string_are_its_own() -> None:
    module = read_module('module attributes {a.b = "say “hi” to”"} {}')
    assert module.attributes["a.b"] == "say “hi” to”"
