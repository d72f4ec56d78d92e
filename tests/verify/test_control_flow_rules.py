"""Every rule of COND_IF, WHILE_LOOP and the variables: a graph that keeps it is taken, one that breaks it says which."""
from __future__ import annotations

import pytest
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

COND_IF = """
func.func @f(%c: tensor<1x1xi1>, %a: tensor<2x3xi32>, %b: tensor<2x1xi32>, %e: tensor<4xi8>) {
  %r = "tosa.cond_if"(%c, %a, %b, %e) ({
  ^bb0(%p: tensor<2x3xi32>, %q: tensor<2x1xi32>, %d: tensor<4xi8>):
    %s = tosa.add %p, %q : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
    tosa.yield %s : tensor<2x3xi32>
  }, {
  ^bb0(%t: tensor<2x3xi32>, %u: tensor<2x1xi32>, %h: tensor<4xi8>):
    tosa.yield %t : tensor<2x3xi32>
  }) : (tensor<1x1xi1>, tensor<2x3xi32>, tensor<2x1xi32>, tensor<4xi8>) -> tensor<2x3xi32>
  return
}
"""
WHILE_LOOP = """
func.func @f(%n: tensor<i32>, %x: tensor<2xf32>) {
  %m, %y = "tosa.while_loop"(%n, %x) ({
  ^bb0(%i: tensor<i32>, %v: tensor<2xf32>):
    %z = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %g = tosa.greater %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %g : tensor<i1>
  }, {
  ^bb0(%j: tensor<i32>, %w: tensor<2xf32>):
    %o = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %k = tosa.sub %j, %o : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %k, %w : tensor<i32>, tensor<2xf32>
  }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
  return
}
"""
VARIABLES = """
tosa.variable @v = dense<1> : tensor<2xi8>
func.func @f(%x: tensor<2xi8>) -> tensor<2xi8> {
  %r = tosa.variable_read @v : tensor<2xi8>
  tosa.variable_write @v, %x : tensor<2xi8>
  return %r : tensor<2xi8>
}
"""


def nested(depth: int) -> str:
    """Loops inside each other, `depth` deep."""
    inner = "tosa.yield %n : tensor<i1>"
    for d in range(depth):
        inner = (f'%r{d} = "tosa.while_loop"(%n) ({{ ^bb0(%c{d}: tensor<i1>): tosa.yield %c{d} : tensor<i1> }}, '
                 f"{{ ^bb0(%b{d}: tensor<i1>): {inner} }}) : (tensor<i1>) -> tensor<i1> tosa.yield %r{d} : tensor<i1>")
    return f"func.func @f(%n: tensor<i1>) {{ {inner.rpartition(' tosa.yield')[0]} return }}"


@pytest.mark.parametrize("text", [COND_IF, COND_IF.replace("tensor<1x1xi1>", "tensor<i1>"), WHILE_LOOP,
                                  WHILE_LOOP.replace("tensor<i1>", "tensor<1x1xi1>").replace("tensor<i32>", "tensor<1x1xi32>"),
                                  VARIABLES, nested(1), nested(6)])
def test_control_flow_that_keeps_the_rules_is_taken(text: str) -> None:
    verify(read_module(text))


COND_IF_RULES = [
    ("tensor<1x1xi1>", "tensor<2x1xi1>", "the condition must have one element, it is tensor<2x1xi1>"),
    ("tensor<1x1xi1>", "tensor<1x1xi8>", "the condition must be a tensor of i1, not tensor<1x1xi8>"),
    ("%d: tensor<4xi8>", "%d: tensor<3xi8>", "number 2 of the arguments of the region for true is tensor<3xi8>"),
    (", %d: tensor<4xi8>", "", "the arguments of the region for true are 2, the operands are 3"),
    ("%h: tensor<4xi8>", "%h: tensor<4xi16>", "number 2 of the arguments of the region for false is tensor<4xi16>"),
    ("%h: tensor<4xi8>", "%h: tensor<4xi8>, %w: tensor<i1>", "the arguments of the region for false are 4"),
    ("%t : tensor<2x3xi32>", "%u : tensor<2x1xi32>", "number 0 of what the region for false yields is tensor<2x1xi32>"),
    ("%t : tensor<2x3xi32>", "%t, %t : tensor<2x3xi32>, tensor<2x3xi32>", "what the region for false yields are 2"),
    ("-> tensor<2x3xi32>\n  return", "-> tensor<2x2xi32>\n  return", "but tensor<2x2xi32> is declared"),
]
YIELD = "tosa.yield %k, %w : tensor<i32>, tensor<2xf32>"
WHILE_LOOP_RULES = [
    ("%v: tensor<2xf32>", "%v: tensor<3xf32>", "number 1 of the arguments of the condition's region is tensor<3xf32>"),
    ("%v: tensor<2xf32>", "%v: tensor<2xf32>, %u: tensor<i1>", "the arguments of the condition's region are 3"),
    ("%w: tensor<2xf32>", "%w: tensor<2xf32>, %u: tensor<i1>", "the arguments of the body are 3, the operands are 2"),
    (YIELD, "tosa.yield %k : tensor<i32>", "what the body yields are 1, the operands are 2"),
    (YIELD, "tosa.yield %k, %o : tensor<i32>, tensor<i32>", "number 1 of what the body yields is tensor<i32>"),
    ("tosa.yield %g : tensor<i1>", "tosa.yield %i : tensor<i32>", "must be a tensor of i1, not tensor<i32>"),
    ("tosa.yield %g : tensor<i1>", "tosa.yield %g, %g : tensor<i1>, tensor<i1>", "yields 2 values, not one"),
    ("tosa.yield %g : tensor<i1>", "%h = tosa.greater %v, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>\n"
     "tosa.yield %h : tensor<2xi1>", "must have one element, it is tensor<2xi1>"),
    ("-> (tensor<i32>, tensor<2xf32>)", "-> (tensor<i32>, tensor<3xf32>)", "but tensor<3xf32> is declared"),
]
VARIABLE_RULES = [
    ("tensor<2xi8>\nfunc", "tensor<3xi8>\nfunc", "variable @v is tensor<3xi8>, here it is tensor<2xi8>"),
    ("tosa.variable @v", "tosa.variable @u", "variable @v is not declared"),
    ("tosa.variable @v = dense<1> : tensor<2xi8>", "tosa.variable @v : tensor<0xi8>", "@v has no elements"),
    ("tosa.variable @v = dense<1> : tensor<2xi8>", f"tosa.variable @v : tensor<{'1x' * 33}i8>", "@v has rank 33"),
]
RULES = [*(("tosa.cond_if", COND_IF, *rule) for rule in COND_IF_RULES),
         *(("tosa.while_loop", WHILE_LOOP, *rule) for rule in WHILE_LOOP_RULES),
         *(("tosa.variable", VARIABLES, *rule) for rule in VARIABLE_RULES)]


@pytest.mark.parametrize(("operator", "text", "old", "new", "words"), RULES)
def test_a_broken_rule_of_control_flow_is_named(operator: str, text: str, old: str, new: str, words: str) -> None:
    assert old in text
    with pytest.raises(Problem) as caught:
        verify(read_module(text.replace(old, new)))
    problem = caught.value
    assert words in problem.message and operator in problem.message
    assert problem.position is not None and not problem.unsupported


def test_control_flow_is_nested_6_deep_at_most() -> None:
    with pytest.raises(Problem, match=r"tosa\.while_loop: control flow is nested 7 deep") as caught:
        verify(read_module(nested(7)))
    assert not caught.value.unsupported
