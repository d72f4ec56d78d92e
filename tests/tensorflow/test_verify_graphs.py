"""Graphs that are made by rewriting, not read, keep the same rules: what no text can say is a problem, too."""
from __future__ import annotations

from dataclasses import replace

import pytest
from tosaic.lowering.dialects.tf.operator import TensorFlowOp
from tosaic.lowering.dialects.tf_executor.operators import (
    EXECUTOR_OPERATORS,
    ControlTrigger,
    Enter,
    ExecutorOp,
    Graph,
    Island,
    Switch,
    control_operands,
    control_result,
    data_operands,
    data_results,
    fetched,
    is_send,
    island_of,
    token_of,
    wrapped,
)
from tosaic.lowering.dialects.tf_executor.types import CONTROL, TOKEN
from tosaic.lowering.graph.graph import Block, Function, Module, Operation, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F32, I1, TensorType, Type
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from ..text.equality import equal_modules
from .cases import in_graph

T, P = TensorType((3,), F32), TensorType((), I1)
X, CONDITION = Value("x", T), Value("p", P)


def values(*types: Type) -> tuple[Value, ...]:
    return tuple(Value(f"v{i}", t) for i, t in enumerate(types))


def module(*operations: Operation, yields: tuple[Value, ...] = (X,), results: tuple[Type, ...] = (T,)) -> Module:
    """A module with one graph of these operations."""
    graph = Operation(Graph(), (), tuple(Value(f"r{i}", t) for i, t in enumerate(results)), (Block((), operations, yields),))
    return Module((Function("f", Block((X, CONDITION), (graph,), graph.results), results),))


def island(*yields: Value, results: tuple[Type, ...] = (CONTROL,), operands: tuple[Value, ...] = ()) -> Operation:
    return Operation(Island(), operands, values(*results), (Block((), (), yields),))


def refused(found: Module) -> str:
    with pytest.raises(Problem) as caught:
        verify(found)
    return caught.value.message


def test_a_graph_that_is_built_is_sound_and_prints() -> None:
    switch = Operation(Switch(), (X, CONDITION), values(T, T, CONTROL))
    negate = Operation(TensorFlowOp(spelling="tf.Neg", properties={}), (switch.results[1],), (Value("n", T),))
    wrapping = island_of(negate, (switch.results[2],), values(T, CONTROL))
    found = module(switch, wrapping, yields=(wrapping.results[0], wrapping.results[1]))
    verify(found)
    text = print_module(found)
    assert "tf_executor.Switch %x, %p : tensor<3xf32>" in text
    assert 'tf_executor.island(%v2) wraps "tf.Neg"(%v1) : (tensor<3xf32>) -> tensor<3xf32>' in text
    assert equal_modules(read_module(text), found)


@pytest.mark.parametrize(("found", "message"), [
    (module(island(X, results=(P, CONTROL))),
     "tf_executor.yield gives back a tensor<3xf32> as value 0, but that result of the tf_executor.island is a tensor<i1>"),
    (module(island(X)), "tf_executor.yield gives back 1 values, but the tf_executor.island has 0 results besides control"),
    (module(results=(P,)), "tf_executor.fetch gives a tensor<3xf32> as value 0, but that result of the tf_executor.graph is a "
                           "tensor<i1>"),
    (module(results=()), "tf_executor.fetch gives 1 values, but the tf_executor.graph has 0 results"),
    (module(island(results=())), "tf_executor.island gives control as its last result, there are none"),
    (module(island(results=(T,))), "tf_executor.island gives control as its last result, it is a tensor<3xf32>"),
    (module(Operation(ControlTrigger(), (), values(T, CONTROL))),
     "tf_executor.ControlTrigger has control as its only result, found 2 results"),
    (module(Operation(Switch(), (CONDITION, X), values(P, P, CONTROL))),
     "tf_executor.Switch takes a tensor<i1> as its predicate, %x is a tensor<3xf32>"),
    (module(Operation(Enter(frame_name="f"), (Value("stranger", T),), values(T, CONTROL))),
     "operand 0, %stranger, is not defined before this place"),
    (module(Operation(Island(), (), values(CONTROL))), "tf_executor.island has one region, found 0"),
    (module(Operation(ControlTrigger(), (Value("t", TOKEN),), values(CONTROL))),
     "tf_executor.ControlTrigger takes no token as operand 0, %t")])
def test_what_no_text_can_say_is_refused(found: Module, message: str) -> None:
    assert message in refused(found)


def test_a_graph_may_not_use_a_value_before_its_operation() -> None:
    late = Operation(ControlTrigger(), (), values(CONTROL))
    early = island(operands=late.results)
    assert "is not defined before this place" in refused(module(early, late))


def test_a_value_of_a_graph_is_not_visible_behind_it() -> None:
    found = module(Operation(Switch(), (X, CONDITION), values(T, T, CONTROL)))
    (function,) = found.functions
    (graph,) = function.body.operations
    inner = graph.regions[0].operations[0].results[0]
    after = Operation(TensorFlowOp(spelling="tf.Neg", properties={}), (inner,), (Value("n", T),))
    body = replace(function.body, operations=(graph, after))
    assert "is not defined before this place" in refused(Module((replace(function, body=body),)))


def test_every_operator_is_in_the_dialects_own_table() -> None:
    assert {c.name.removeprefix("tf_executor.") for c in EXECUTOR_OPERATORS.values()} == {
        "graph", "island", "Switch", "_SwitchN", "Merge", "NextIteration.Source", "NextIteration.Sink", "LoopCond", "Enter",
        "Exit", "ControlTrigger"}
    assert all(issubclass(c, ExecutorOp) and c.foreign for c in EXECUTOR_OPERATORS.values())
    assert not set(EXECUTOR_OPERATORS) & set(OPERATORS)


def test_parts_of_an_operation_are_distinguished() -> None:
    text = in_graph('%s, %c = tf_executor.island wraps "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
                    "%m, %k, %d = tf_executor.Merge %x, %s, %c : tensor<3xf32>\n"
                    '%u = tf_executor.Send %m, %d {tensor_name = "a"} : tensor<3xf32>')
    graph = read_module(text).functions[0].body.operations[0]
    negate, merge, send = graph.regions[0].operations
    assert [v.name for v in data_operands(merge)] == ["x", "s"]
    assert control_operands(merge) == (negate.results[1],) == (control_result(negate),)
    assert [v.name for v in data_results(merge)] == ["m", "k"]
    assert token_of(merge) is None and control_result(graph) is None
    assert is_send(send) and not is_send(negate)
    inner = wrapped(negate)
    assert inner is not None and inner.op.spelling == "tf.Neg"  # type: ignore[attr-defined]
    assert [v.name for v in fetched(graph)[0]] == ["x"] and fetched(graph)[1] == ()


def test_levels_of_tosa_do_not_hold_for_tensorflow() -> None:
    text = ('func.func @f(%x: tensor<*xf32>, %y: tensor<1x1x1x1x1x1x1x1xf32>) -> tensor<*xf32> {\n'
            '%0 = "tf.Add"(%x, %y) : (tensor<*xf32>, tensor<1x1x1x1x1x1x1x1xf32>) -> tensor<*xf32>\n'
            'return %0 : tensor<*xf32>\n}')
    verify(read_module(text))
    with pytest.raises(Problem, match="the rank of %x is not known"):
        verify(read_module(text.replace('"tf.Add"(%x, %y)', '"other.add"(%x, %y)')))
