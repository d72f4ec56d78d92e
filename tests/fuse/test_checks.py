"""Checks in fusion: a step between kernels, nothing where it always holds, refused where it never does."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosaic.assertion import Assert
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Block, Module, Value
from tosaic.lowering.graph.types import F32, I1, TensorType
from tosaic.lowering.kernels.interpret import VariableContents, run
from tosaic.lowering.kernels.kernel import CheckTrue, CheckWritten, Kernels, walk
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .graphs import Graph

STATE = TensorType((1, 6), F32)


def check(g: Graph, condition: Value, message: str = "it fails") -> None:
    g.add(Assert(message=message), condition)


def fused(module: Module) -> Kernels:
    return fuse(module, module.function())


def kinds(kernels: Kernels) -> list[str]:
    return [type(s).__name__ for s in kernels.steps]


def region(g: Graph, value: Value, *conditions: Value | np.ndarray) -> Block:
    """A region that checks some conditions and yields a value."""
    inner = Graph("inner")
    for c in conditions:
        check(inner, c if isinstance(c, Value) else inner.constant(c))
    return inner.finish(value)


def test_a_check_is_a_step_behind_the_kernel_of_its_condition() -> None:
    g = Graph()
    x, y = g.input(1), g.input(1)
    check(g, g.op("greater", x, y), "x is not above y")
    kernels = fused(g.module(g.op("add", x, y)))
    assert kinds(kernels) == ["Compute", "CheckTrue", "Compute"]
    assert [(f.message, f.kind, f.help) for f in kernels.faults] == [("x is not above y", "check", None)]
    two, one = np.full(1, 2, np.float32), np.ones(1, np.float32)
    assert run(kernels, [two, one])[0].item() == 3
    with pytest.raises(Problem, match="x is not above y"):
        run(kernels, [one, two])


def test_an_argument_and_a_variable_are_conditions_where_they_lie() -> None:
    g = Graph()
    flag = TensorType((1,), I1)
    check(g, g.argument(flag))
    check(g, g.read("go", flag))
    kernels = fused(g.module(g.input(2), variables=[("go", flag, np.ones(1, bool))]))
    assert [s.condition.role for s in kernels.steps if isinstance(s, CheckTrue)] == ["argument", "variable"]


def test_a_check_that_always_holds_is_nothing() -> None:
    g = Graph()
    check(g, g.op("equal", np.ones(1, np.int32), np.ones(1, np.int32)))
    kernels = fused(g.module(g.input(2)))
    assert kinds(kernels) == ["Compute"] and not kernels.faults


def test_a_check_that_fails_in_every_call_is_refused_when_compiling() -> None:
    g = Graph()
    check(g, g.op("equal", np.ones(1, np.int32), np.zeros(1, np.int32)), "one is not zero")
    with pytest.raises(Problem, match="one is not zero") as caught:
        fused(g.module(g.input(2)))
    assert caught.value.kind == "check" and "in every call" in str(caught.value.help)


def test_a_check_in_a_branch_that_would_always_fail_fails_only_there() -> None:
    g = Graph()
    go, x = g.input(dtype="bool"), g.input(2)
    y = g.op("cond_if", go, regions=(region(g, x, np.array(False)), region(g, x, np.array(True))))
    kernels = fused(g.module(y))
    data = np.ones(2, np.float32)
    assert np.array_equal(run(kernels, [np.array(False), data])[0], data)
    with pytest.raises(Problem, match="it fails"):
        run(kernels, [np.array(True), data])
    assert sum(isinstance(s, CheckTrue) for s in walk(kernels.steps)) == 1


def test_checks_of_variables_do_not_overtake_checks_of_the_graph() -> None:
    """The first one that fails is the one that is reported; behind the graph's own check they come before a write."""
    g = Graph()
    c, x = g.input(dtype="bool"), g.input(1, 6)
    check(g, c)
    g.write("a", x)
    kernels = fused(g.module(g.read("b", STATE), variables=[("a", STATE, None), ("b", STATE, None)]))
    assert kinds(kernels) == ["CheckTrue", "CheckWritten", "Compute", "MarkWritten", "Compute"]
    with pytest.raises(Problem, match="it fails"):
        run(kernels, [np.array(False), np.ones((1, 6), np.float32)], VariableContents())
    with pytest.raises(Problem, match="@b is read before"):
        run(kernels, [np.array(True), np.ones((1, 6), np.float32)], VariableContents())
    assert [s.fault for s in kernels.steps if isinstance(s, (CheckTrue, CheckWritten))] == [0, 1]


DECLARED = "tosa.variable @a : tensor<i32>\ntosa.variable @b : tensor<i32>\n"
READS = """%a = tosa.variable_read @a : tensor<i32>
 %b = tosa.variable_read @b : tensor<i32>
 %r = tosa.add %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
 return %r : tensor<i32> }"""
BRANCH = """func.func @main(%c: tensor<i1>, %n: tensor<i32>) -> tensor<i32> {
 %t = tosa.cond_if %c : tensor<i1> -> tensor<i32> { WHAT tosa.yield %n : tensor<i32> } else { tosa.yield %n : tensor<i32> }
 """
LOOP = """func.func @main(%c: tensor<i1>, %n: tensor<i32>) -> tensor<i32> {
 %t = tosa.while_loop (%k = %c) : (tensor<i1>) -> (tensor<i1>) { tosa.yield %k : tensor<i1> } do {
 ^bb0(%k: tensor<i1>):
  WHAT
  %f = "tosa.const"() {values = dense<false> : tensor<i1>} : () -> tensor<i1>
  tosa.yield %f : tensor<i1> }
 """


def order_of(text: str) -> list[str]:
    """The steps of a function by their names, checks by those of their variables."""
    kernels = fused(read_module(DECLARED + text + READS))
    names = [f"check {s.variable.name}" if isinstance(s, CheckWritten) else type(s).__name__ for s in kernels.steps]
    return [n for n in names if n.startswith("check") or n in ("Branch", "Loop")]


@pytest.mark.parametrize(("text", "step"), [(BRANCH, "Branch"), (LOOP, "Loop")])
@pytest.mark.parametrize(("what", "order"), [
    ("tosa.variable_write @a, %n : tensor<i32>", ["step", "check a", "check b"]),
    ("tosa.variable_write @b, %n : tensor<i32>", ["check a", "step", "check b"]),
    ("%x = tosa.variable_read @b : tensor<i32>", ["step", "check a", "check b"]),
    ("", ["check a", "check b", "step"])])
def test_a_check_passes_only_what_cannot_mark_its_variable_and_does_not_fail(text: str, step: str, what: str,
                                                                             order: list[str]) -> None:
    assert order_of(text.replace("WHAT", what)) == [step if n == "step" else n for n in order]
