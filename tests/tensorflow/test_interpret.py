"""The interpreters of TensorFlow's dialects give TensorFlow's answers on the whole corpus, variables included."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.dialects.tf_executor.interpret import run_together
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .corpus import PAIRS, Case
from .interpreted import run_interpreted


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_the_corpus_gives_tensorflows_answers(name: str, form: str) -> None:
    assert run_interpreted(Case(name, form))


def graph(body: str, arguments: str = "%x: tensor<i32>, %p: tensor<i1>", results: str = "tensor<i32>") -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n %r = tf_executor.graph {{\n{body}\n}}\n return %r : {results}\n}}"


def run(text: str, *arguments: Any, **options: Any) -> list[Any]:
    environment = Environment(read_module(text), **options)
    return [np.asarray(r).tolist() for r in interpret(environment, "main", [np.asarray(a) for a in arguments])]


MERGE_AFTER_DEAD_CONTROL = graph("""
  %f, %t, %c = tf_executor.Switch %x, %p : tensor<i32>
  %a, %dead = tf_executor.island wraps "tf.Neg"(%f) : (tensor<i32>) -> tensor<i32>
  %b, %live = tf_executor.island wraps "tf.Neg"(%x) : (tensor<i32>) -> tensor<i32>
  %v, %i, %m = tf_executor.Merge %b, %dead : tensor<i32>
  tf_executor.fetch %v : tensor<i32>""")


def test_a_merge_with_a_dead_control_input_is_live_as_in_tensorflow_or_dead_as_in_the_document() -> None:
    arguments = np.int32(3), np.array(True)
    assert run(MERGE_AFTER_DEAD_CONTROL, *arguments) == [-3]
    with pytest.raises(Problem, match=r"%v is fetched, but it is dead"):
        run(MERGE_AFTER_DEAD_CONTROL, *arguments, rfc_merge=True)
    assert run(MERGE_AFTER_DEAD_CONTROL, np.int32(3), np.array(False), rfc_merge=True) == [-3]


def test_the_option_of_load_gives_the_meaning_of_the_document_to_both_engines() -> None:
    plain, document = (tosaic.load(MERGE_AFTER_DEAD_CONTROL, rfc_merge=rfc_merge).main for rfc_merge in (False, True))
    assert [plain(np.int32(3), np.array(p)) for p in (True, False)] == [-3, -3]
    assert document(np.int32(3), np.array(False)) == -3
    assert document.check([[np.int32(3), np.array(False)]]).agrees
    with pytest.raises(Problem, match="dead"):
        document(np.int32(3), np.array(True))


def test_a_fetch_of_a_dead_value_names_it_and_its_place() -> None:
    text = graph("""
  %f, %t, %c = tf_executor.Switch %x, %p : tensor<i32>
  tf_executor.fetch %t : tensor<i32>""")
    assert run(text, np.int32(3), np.array(True)) == [3]
    with pytest.raises(Problem, match=r"%t is fetched, but it is dead") as caught:
        run(text, np.int32(3), np.array(False))
    assert caught.value.position is not None and caught.value.position.line == 5


def exchange(body: str) -> str:
    return graph(body, "%x: tensor<i32>")


SEND = ('%s = tf_executor.island wraps "tf._Send"(%x) {tensor_name = "NAME", send_device = "a", recv_device = "b", '
        "send_device_incarnation = 1 : i64, client_terminated = false} : (tensor<i32>) -> ()")
RECEIVE = ('%v, %w = tf_executor.island wraps "tf._Recv"() {tensor_name = "NAME", send_device = "a", recv_device = "b", '
           "send_device_incarnation = 1 : i64, client_terminated = false} : () -> tensor<i32>")
FETCH = "tf_executor.fetch %v : tensor<i32>"


def test_a_receive_waits_for_its_send() -> None:
    assert run(exchange("\n".join((RECEIVE, SEND, FETCH))), np.int32(5)) == [5]


def test_a_receive_without_a_send_is_a_problem_that_names_it() -> None:
    with pytest.raises(Problem, match="a Recv waits for 'NAME', which nothing sends") as caught:
        run(exchange("\n".join((RECEIVE, FETCH))), np.int32(5))
    assert caught.value.position is not None and caught.value.position.line == 3


def test_two_graphs_that_run_at_once_meet() -> None:
    """Each waits for what the other sends."""
    texts = [exchange("\n".join((RECEIVE.replace("NAME", a), SEND.replace("NAME", b), FETCH)))
             for a, b in (("p", "q"), ("q", "p"))]
    graphs = []
    for text, value in zip(texts, (7, 9)):
        function = read_module(text).function("main")
        graphs.append((function.body.operations[0], {function.arguments[0]: np.array(value, np.int32)}))
    environment = Environment(read_module(texts[0]))
    assert [int(r[0]) for r in run_together(environment, graphs)] == [9, 7]


def test_a_dead_value_travels_through_send_and_receive() -> None:
    text = graph("\n".join(("%f, %t, %c = tf_executor.Switch %x, %p : tensor<i32>", SEND.replace("%x", "%t"), RECEIVE, FETCH)))
    assert run(text, np.int32(5), np.array(True)) == [5]
    with pytest.raises(Problem, match="dead"):
        run(text, np.int32(5), np.array(False))


LOOP = """
  %e, %c0 = tf_executor.Enter %x frame "loop" : tensor<i32>
  %n, %token, %c1 = tf_executor.NextIteration.Source : tensor<i32>
  %m, %i, %c2 = tf_executor.Merge %e, %n : tensor<i32>
  %half, %c3 = tf_executor.island {
    %two = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %h = "tf.FloorDiv"(%m, %two) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tf_executor.yield %h : tensor<i32>
  }
  %go, %c4 = tf_executor.island {
    %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %g = "tf.Greater"(%half, %one) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tf_executor.yield %g : tensor<i1>
  }
  %f, %t, %c5 = tf_executor.Switch %half, %go : tensor<i32>
  tf_executor.NextIteration.Sink[%token] %t : tensor<i32>
  %out, %c6 = tf_executor.Exit %f : tensor<i32>
  tf_executor.fetch %out : tensor<i32>"""


@pytest.mark.parametrize("start", [1, 2, 3, 9, 1000])
def test_a_loop_that_tests_behind_its_body_runs_at_least_once(start: int) -> None:
    expected = start // 2
    while expected > 1:
        expected //= 2
    assert run(exchange(LOOP), np.int32(start)) == [expected]


def test_a_loop_that_a_dead_value_enters_gives_a_dead_value_back() -> None:
    entered = LOOP.replace("Enter %x", "Enter %dt").replace(
        "  tf_executor.fetch %out", "  %v, %w, %z = tf_executor.Merge %out, %df : tensor<i32>\n  tf_executor.fetch %v")
    text = graph("  %df, %dt, %d = tf_executor.Switch %x, %p : tensor<i32>" + entered)
    assert run(text, np.int32(9), np.array(True)) == [1]
    assert run(text, np.int32(9), np.array(False)) == [9]


def test_an_error_in_an_operation_is_at_its_place() -> None:
    text = """func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %y = "tf.FloorDiv"(%x, %zero) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  return %y : tensor<3xi32>
}"""
    with pytest.raises(Problem, match="division by zero") as caught:
        run(text, np.ones(3, np.int32))
    assert caught.value.position is not None and caught.value.position.line == 3


def test_an_operation_that_is_not_known_is_named() -> None:
    text = """func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %y = "tf.Frobnicate"(%x) : (tensor<3xi32>) -> tensor<3xi32>
  return %y : tensor<3xi32>
}"""
    with pytest.raises(Problem, match=r"tf\.Frobnicate is not known"):
        run(text, np.ones(3, np.int32))


def test_a_variable_that_was_never_set_is_a_problem() -> None:
    text = """func.func @main() -> tensor<f32> {
  %h = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
  %y = "tf.ReadVariableOp"(%h) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
  return %y : tensor<f32>
}"""
    with pytest.raises(Problem, match="variable v is read before it has a value"):
        run(text)
