"""Assertions of TensorFlow in compiled code: the call fails, variables stay; in the forms that TensorFlow writes them in."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.kernels.kernel import CheckTrue
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.variables import Context

STRING = "tensor<!tf_type.string>"
FUNCTIONS = f"""
  func.func private @fails(%c: tensor<i1>, %x: tensor<2xf32>, %s: tensor<2x!tf_type.string>) -> tensor<i1> {{
    %cst = "tf.Const"() <{{value = dense<"q must be positive.  "> : {STRING}}}> : () -> {STRING}
    %cst_0 = "tf.Const"() <{{value = dense<"q (q:0) = "> : {STRING}}}> : () -> {STRING}
    %n = "tf.Const"() <{{value = dense<[3, 4]> : tensor<2xi32>}}> : () -> tensor<2xi32>
    "tf.Assert"(%c, %cst, %cst_0, %x, %n, %s) <{{summarize = 3 : i64}}> : (tensor<i1>, {STRING}, {STRING}, tensor<2xf32>,
      tensor<2xi32>, tensor<2x!tf_type.string>) -> ()
    %1 = "tf.Identity"(%c) : (tensor<i1>) -> tensor<i1>
    return %1 : tensor<i1>
  }}
  func.func private @holds(%c: tensor<i1>, %x: tensor<2xf32>, %s: tensor<2x!tf_type.string>) -> tensor<i1> {{
    %0 = "tf.Identity"(%c) : (tensor<i1>) -> tensor<i1>
    return %0 : tensor<i1>
  }}
"""
ARGUMENTS = "%q: tensor<f32>, %p: tensor<i1>, %x: tensor<2xf32>, %h: tensor<!tf_type.resource<tensor<2xf32>>>"
GUARDED = f"""func.func @f({ARGUMENTS}) -> tensor<2xf32> {{
    %zero = "tf.Const"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
    "tf.AssignVariableOp"(%h, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
    %s = "tf.AsString"(%x) <{{width = -1 : i64}}> : (tensor<2xf32>) -> tensor<2x!tf_type.string>
    %c = "tf.Less"(%zero, %q) : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %r = "tf.If"(%c, %c, %x, %s) <{{else_branch = @fails, is_stateless = false, then_branch = @holds}}> : (tensor<i1>,
      tensor<i1>, tensor<2xf32>, tensor<2x!tf_type.string>) -> tensor<i1>
    %y = "tf.AddV2"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }}{FUNCTIONS}"""
X = np.array([1, 2], np.float32)
TRUE, FALSE = np.array(True), np.array(False)


def compiled(text: str, context: Context) -> Any:
    module = read_module(text, "model.mlir")
    verify(module)
    lowered = to_tosa(module, "f", None, Bindings({}, {"h": np.zeros(2, np.float32)}))
    verify(lowered)
    return Traced(lowered, "f").compile(context=context)


def fails(function: Any, *arguments: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        function(*arguments)
    return caught.value


def in_executor(body: str) -> str:
    return (f"func.func @f({ARGUMENTS}) -> tensor<2xf32> {{\n  %0 = tf_executor.graph {{\n{body}\n  }}\n"
            "  return %0 : tensor<2xf32>\n}\n")


def test_a_guarded_assertion_fails_with_what_it_says_at_its_place_and_changes_nothing() -> None:
    """As `tf.function` writes every assertion; the strings that only the message needs are not computed."""
    context = Context("test")
    function = compiled(GUARDED, context)
    found = fails(function, np.float32(-1), TRUE, X)
    assert found.message == "assertion failed: q must be positive. q (q:0) = %x 3, 4 %s" and found.kind == "check"
    assert found.position is not None and found.position.line == 15
    assert context.read("h").tolist() == [0, 0]
    assert function(np.float32(1), TRUE, X).tolist() == [2, 4]
    assert context.read("h").tolist() == [1, 2]


def test_a_guarded_assertion_is_a_check_without_a_branch_and_nothing_is_kept_for_it() -> None:
    program = compiled(GUARDED, Context("test")).lowered.program
    assert [type(s).__name__ for s in program.steps] == ["Compute", "CheckTrue", "Compute", "MarkWritten", "Compute"]


def test_an_assertion_in_a_branch_that_is_not_taken_does_not_fail() -> None:
    text = f"""func.func @f({ARGUMENTS}) -> tensor<2xf32> {{
    %r = "tf.If"(%p, %x) <{{else_branch = @fails, is_stateless = false, then_branch = @holds}}> : (tensor<i1>, tensor<2xf32>
      ) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }}
  func.func private @fails(%x: tensor<2xf32>) -> tensor<2xf32> {{
    %false = "tf.Const"() <{{value = dense<false> : tensor<i1>}}> : () -> tensor<i1>
    "tf.Assert"(%false) <{{summarize = 3 : i64}}> : (tensor<i1>) -> ()
    return %x : tensor<2xf32>
  }}
  func.func private @holds(%x: tensor<2xf32>) -> tensor<2xf32> {{
    return %x : tensor<2xf32>
  }}"""
    function = compiled(text, Context("test"))
    assert function(np.float32(0), TRUE, X).tolist() == [1, 2]
    assert fails(function, np.float32(0), FALSE, X).message == "assertion failed"


ORDER = """    %a = tf_executor.island wraps "tf.AssignVariableOp"(%h, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>,
      tensor<2xf32>) -> ()
    %b = tf_executor.island(%a) wraps "tf.Assert"(%p) : (tensor<i1>) -> ()
    %r, %d = tf_executor.island(%b) wraps "tf.ReadVariableOp"(%h) : (tensor<!tf_type.resource<tensor<2xf32>>>)
      -> tensor<2xf32>
    tf_executor.fetch %r : tensor<2xf32>"""
SWITCHED = """    %false, %true, %k = tf_executor.Switch %x, %p : tensor<2xf32>
    %v, %c = tf_executor.island wraps "tf.Identity"(%true) : (tensor<2xf32>) -> tensor<2xf32>
    %bad, %e = tf_executor.island wraps "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %a = tf_executor.island(%c) wraps "tf.Assert"(%bad) : (tensor<i1>) -> ()
    %w, %d = tf_executor.island(%a) wraps "tf.Identity"(%true) : (tensor<2xf32>) -> tensor<2xf32>
    %m, %i, %j = tf_executor.Merge %w, %false : tensor<2xf32>
    tf_executor.fetch %m : tensor<2xf32>"""


def test_an_assertion_of_an_executor_graph_fails_where_its_control_edges_have_it() -> None:
    context = Context("test")
    function = compiled(in_executor(ORDER), context)
    fails(function, np.float32(0), FALSE, X)
    assert context.read("h").tolist() == [0, 0]
    assert function(np.float32(0), TRUE, X).tolist() == [1, 2]


def test_a_dead_assertion_does_not_fail() -> None:
    function = compiled(in_executor(SWITCHED), Context("test"))
    assert function(np.float32(0), FALSE, X).tolist() == [1, 2]
    assert fails(function, np.float32(0), TRUE, X).message == "assertion failed"


def test_an_assertion_that_nothing_reaches_is_not_made() -> None:
    body = """    %a = tf_executor.island wraps "tf.Assert"(%p) : (tensor<i1>) -> ()
    tf_executor.fetch %x : tensor<2xf32>"""
    function = compiled(in_executor(body), Context("test"))
    assert function(np.float32(0), FALSE, X).tolist() == [1, 2]
    assert not any(isinstance(s, CheckTrue) for s in function.lowered.program.steps)
