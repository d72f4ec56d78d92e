"""The forms of an executor graph: generic and custom mean the same; attributes, locations and names are kept."""
from __future__ import annotations

import re

import numpy as np
import pytest
import tosaic
from tosaic.lowering.graph.graph import Operation
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from ..text.equality import equal_modules
from .cases import in_graph

CUSTOM = """func.func @f(%x: tensor<3xf32>, %p: tensor<i1>, %i: tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0:2 = tf_executor.graph {
    %v, %t, %c = tf_executor.NextIteration.Source : tensor<3xf32> {T = f32}
    %e, %c0 = tf_executor.Enter %x frame "loop" parallel_iterations 4 : tensor<3xf32>
    %q, %c1 = tf_executor.Enter %p frame "loop" constant : tensor<i1>
    %m, %k, %c2 = tf_executor.Merge %e, %v : tensor<3xf32> {N = 2 : i64}
    %l, %c3 = tf_executor.LoopCond %q : tensor<i1>
    %no, %yes, %c4 = tf_executor.Switch %m, %l, %c2 : tensor<3xf32>
    %n, %c5 = tf_executor.island(%c4) wraps "tf.Neg"(%yes) {device = ""} : (tensor<3xf32>) -> tensor<3xf32>
    tf_executor.NextIteration.Sink[%t] %n, %c5 : tensor<3xf32>
    %r, %c6 = tf_executor.Exit %no : tensor<3xf32>
    %s:3, %c7 = tf_executor._SwitchN %x, %i of 3 (%c6) : tensor<3xf32>
    %c8 = tf_executor.ControlTrigger %c6, %c7
    tf_executor.fetch %r, %s#1, %c8 : tensor<3xf32>, tensor<3xf32>, !tf_executor.control {a.b}
  } {x.y = "z"}
  return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
}
"""
GENERIC = """"func.func"() <{sym_name = "f", function_type =
    (tensor<3xf32>, tensor<i1>, tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>)}> ({
^bb0(%x: tensor<3xf32>, %p: tensor<i1>, %i: tensor<i32>):
  %0:2 = "tf_executor.graph"() ({
    %v:3 = "tf_executor.NextIteration.Source"() {T = f32} : () -> (tensor<3xf32>, !tf_executor.token, !tf_executor.control)
    %e:2 = "tf_executor.Enter"(%x) <{frame_name = "loop", is_constant = false, parallel_iterations = 4 : i64}>
        : (tensor<3xf32>) -> (tensor<3xf32>, !tf_executor.control)
    %q:2 = "tf_executor.Enter"(%p) <{frame_name = "loop", is_constant = true, parallel_iterations = 10 : i64}>
        : (tensor<i1>) -> (tensor<i1>, !tf_executor.control)
    %m:3 = "tf_executor.Merge"(%e#0, %v#0) {N = 2 : i64}
        : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, !tf_executor.control)
    %l:2 = "tf_executor.LoopCond"(%q#0) : (tensor<i1>) -> (tensor<i1>, !tf_executor.control)
    %s:3 = "tf_executor.Switch"(%m#0, %l#0, %m#2)
        : (tensor<3xf32>, tensor<i1>, !tf_executor.control) -> (tensor<3xf32>, tensor<3xf32>, !tf_executor.control)
    %n:2 = "tf_executor.island"(%s#2) ({
      %y = "tf.Neg"(%s#1) {device = ""} : (tensor<3xf32>) -> tensor<3xf32>
      "tf_executor.yield"(%y) : (tensor<3xf32>) -> ()
    }) : (!tf_executor.control) -> (tensor<3xf32>, !tf_executor.control)
    "tf_executor.NextIteration.Sink"(%v#1, %n#0, %n#1) : (!tf_executor.token, tensor<3xf32>, !tf_executor.control) -> ()
    %r:2 = "tf_executor.Exit"(%s#0) : (tensor<3xf32>) -> (tensor<3xf32>, !tf_executor.control)
    %w:4 = "tf_executor._SwitchN"(%x, %i, %r#1) <{num_outs = 3 : i64}> : (tensor<3xf32>, tensor<i32>, !tf_executor.control)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, !tf_executor.control)
    %z = "tf_executor.ControlTrigger"(%r#1, %w#3) : (!tf_executor.control, !tf_executor.control) -> !tf_executor.control
    "tf_executor.fetch"(%r#0, %w#1, %z) {a.b} : (tensor<3xf32>, tensor<3xf32>, !tf_executor.control) -> ()
  }) {x.y = "z"} : () -> (tensor<3xf32>, tensor<3xf32>)
  "func.return"(%0#0, %0#1) : (tensor<3xf32>, tensor<3xf32>) -> ()
}) : () -> ()
"""


def printed(body: str) -> str:
    module = read_module(in_graph(body))
    verify(module)
    text = print_module(module)
    assert equal_modules(read_module(text), module)
    return text


def test_the_generic_form_and_the_custom_one_are_one_graph() -> None:
    custom, generic = read_module(CUSTOM), read_module(GENERIC)
    verify(custom)
    verify(generic)
    assert equal_modules(custom, generic)


def test_every_operator_prints_as_it_was_written() -> None:
    text = print_module(read_module(CUSTOM))
    assert [line.strip() for line in text.splitlines()[1:-1]] == [line.strip() for line in CUSTOM.splitlines()]


@pytest.mark.parametrize("line", [
    '%a, %c = tf_executor.island wraps "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32> loc("f.py":1:2)',
    '%a, %c = tf_executor.Enter %x frame "f" : tensor<3xf32> {T = f32} loc("f.py":1:2)',
    '%a, %c = tf_executor.Enter %x frame "a\\22b" : (tensor<3xf32>) -> (tensor<*xf32>, !tf_executor.control)',
    "%f, %t, %c = tf_executor.Switch %x, %p : (tensor<3xf32>, tensor<i1>) -> (tensor<3xf32>, tensor<*xf32>, "
    "!tf_executor.control)",
    "%m, %j, %c = tf_executor.Merge %x : (tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, !tf_executor.control)",
    '%c = "tf_executor.ControlTrigger"() : () -> !tf_executor.control',
    '%a:2, %c = "tf_executor._SwitchN"(%x, %i) <{num_outs = 2 : i64}> : (tensor<3xf32>, tensor<i32>) -> '
    "(tensor<3xf32>, tensor<*xf32>, !tf_executor.control)",
    '%a, %c = tf_executor.island wraps "other.op"(%x) : (tensor<3xf32>) -> tensor<3xf32>'])
def test_a_line_prints_as_it_was_written(line: str) -> None:
    assert line in [found.strip() for found in printed(line).splitlines()]


def test_an_island_of_several_places_is_not_wrapped() -> None:
    text = printed('%a, %c = tf_executor.island {\n%n = "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32> loc("f.py":1:2)\n'
                   "tf_executor.yield %n : tensor<3xf32>\n}")
    assert "wraps" not in text and 'loc("f.py":1:2)' in text


def test_an_island_of_a_graph_is_not_wrapped() -> None:
    text = printed("%a, %c = tf_executor.island {\n%g = tf_executor.graph {\ntf_executor.fetch %x : tensor<3xf32>\n}\n"
                   "tf_executor.yield %g : tensor<3xf32>\n}")
    assert "wraps" not in text


def test_branches_stand_between_the_blocks_of_a_function_alone() -> None:
    with pytest.raises(Problem) as caught:
        read_module('func.func @f(%p: i1) {\n"tf.IfRegion"(%p) ({\ncf.br ^bb1\n^bb1:\n"tf.Yield"() : () -> ()\n}, {\n'
                    '"tf.Yield"() : () -> ()\n}) : (i1) -> ()\nreturn\n}')
    assert caught.value.message == "a region of more than one block is not supported"


def test_a_name_may_be_used_in_many_islands() -> None:
    text = printed("\n".join(f'%a{i}, %c{i} = tf_executor.island {{\n%cst = "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
                             f'%n = "tf.Abs"(%cst) : (tensor<3xf32>) -> tensor<3xf32>\ntf_executor.yield %n : tensor<3xf32>\n}}'
                             for i in range(3)))
    assert text.count("%cst = ") == 3


def nodes(text: str) -> list[Operation]:
    return list(read_module(text).functions[0].body.operations[0].regions[0].operations)


def test_results_that_the_text_does_not_name_are_there() -> None:
    (switch,) = nodes(in_graph("tf_executor.Switch %x, %p : tensor<3xf32>"))
    assert len(switch.results) == 3


def test_a_fetch_and_a_yield_of_nothing_may_be_left_out() -> None:
    """As in MLIR, where both are implicit terminators."""
    explicit = """func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  tf_executor.graph {
    %c = tf_executor.island {
      tf_executor.yield
    }
    %d = tf_executor.island(%c) {
      %a = "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
      tf_executor.yield
    }
    tf_executor.fetch
  }
  tf_executor.graph {
    tf_executor.fetch
  }
  return %x : tensor<3xf32>
}"""
    shorter = re.sub(r"\n *tf_executor\.(yield|fetch)(?=\n)", "", explicit)
    assert "fetch" not in shorter and "yield" not in shorter
    module = read_module(shorter)
    verify(module)
    assert equal_modules(module, read_module(explicit))
    assert tosaic.load(shorter)(np.arange(3, dtype=np.float32)).tolist() == [0, 1, 2]


C = "!tf_executor.control"


@pytest.mark.parametrize("text, message", [
    ('"tf_executor.graph"() ({\n}) : () -> ()', "has a block that ends in tf_executor.fetch"),
    ('"tf_executor.graph"() ({\n^entry:\n}) : () -> ()', "has a block that ends in tf_executor.fetch"),
    (f'tf_executor.graph {{\n"tf_executor.island"() ({{\n}}) : () -> ({C})\ntf_executor.fetch\n}}',
     "ends in tf_executor.yield"),
    ('tf_executor.graph {\n"tf_executor.island"() ({\n"tf_executor.yield"() : () -> ()\n}) : () -> ()\n'
     'tf_executor.fetch\n}', "gives control as its last result"),
    ('tf_executor.graph {\n%1:3 = "tf_executor._SwitchN"(%i, %x) {num_outs = 2} : (i32, tensor<i32>) -> '
     f'(tensor<i32>, tensor<i32>, {C})\ntf_executor.fetch\n}}', "takes tensors, operand 0, %i, is a i32"),
    (f'tf_executor.graph {{\n%v, %n, %c = "tf_executor.Merge"(%x, %i) : (tensor<i32>, i32) -> (tensor<i32>, tensor<i32>, {C})\n'
     'tf_executor.fetch\n}', "takes tensors, operand 1, %i, is a i32"),
    (f'tf_executor.graph {{\n%v, %n, %c = "tf_executor.Merge"(%x) : (tensor<i32>) -> (i32, tensor<i32>, {C})\n'
     'tf_executor.fetch\n}', "gives tensors, result 0 is a i32")])
def test_in_the_generic_form_nothing_is_implied(text: str, message: str) -> None:
    with pytest.raises(Problem) as caught:
        verify(read_module(f"func.func @f(%i: i32, %x: tensor<i32>) {{\n{text}\nreturn\n}}"))
    assert message in caught.value.message
