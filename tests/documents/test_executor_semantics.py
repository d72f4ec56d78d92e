"""Sentences of the dialects' RFC about single operations of the executor, tried one by one in the interpreter and compiled."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

X = np.array(3, np.float32)
SWITCH = "%s:3 = tf_executor.Switch %x, %p : tensor<f32>\n"
NEGATED = '%{0}, %{0}c = tf_executor.island{2} wraps "tf.Neg"(%{1}) : (tensor<f32>) -> tensor<f32>\n'


def text(body: str, fetched: str, types: str = "%x: tensor<f32>, %p: tensor<i1>", rest: str = "") -> str:
    return (f"func.func @main({types}) -> tensor<f32> {{\n%0 = tf_executor.graph {{\n{body}"
            f"tf_executor.fetch %{fetched} : tensor<f32>\n}}\nreturn %0 : tensor<f32>\n}}\n{rest}")


def both(source: str, *arguments: object) -> list[float | str]:
    """What the interpreter and compiled code give: a number, or why there is none."""
    module = read_module(source)
    verify(module)
    given = [np.asarray(a) for a in arguments]

    def compiled() -> float:
        return float(Traced(to_tosa(module, "main"), "main").compile()(*given))

    def interpreted() -> float:
        return float(interpret(Environment(module), "main", given)[0])

    found: list[float | str] = []
    for run in (interpreted, compiled):
        try:
            found.append(run())
        except Problem as problem:
            found.append(problem.message)
    return found


def is_dead(found: list[float | str]) -> bool:
    return all(isinstance(x, str) and "is fetched, but it is dead" in x for x in found)


@pytest.mark.parametrize("p", [True, False])
def test_a_switch_gives_its_data_to_one_output(p: bool) -> None:
    for output in range(2):
        found = both(text(SWITCH, f"s#{output}"), X, p)
        assert found == [3, 3] if output == int(p) else is_dead(found)


@pytest.mark.parametrize("p", [True, False])
def test_an_island_that_captures_a_dead_value_is_dead(p: bool) -> None:
    found = both(text(SWITCH + NEGATED.format("n", "s#1", ""), "n"), X, p)
    assert found == [-3, -3] if p else is_dead(found)


@pytest.mark.parametrize("p", [True, False])
def test_an_island_behind_a_dead_token_does_not_run(p: bool) -> None:
    found = both(text(SWITCH + NEGATED.format("d", "s#1", "") + NEGATED.format("n", "x", "(%dc)"), "n"), X, p)
    assert found == [-3, -3] if p else is_dead(found)


@pytest.mark.parametrize("p", [True, False])
def test_a_control_trigger_is_live_behind_a_dead_operation(p: bool) -> None:
    trigger = "%t = tf_executor.ControlTrigger %dc\n"
    found = both(text(SWITCH + NEGATED.format("d", "s#1", "") + trigger + NEGATED.format("n", "x", "(%t)"), "n"), X, p)
    assert found == [-3, -3]


DEAD = NEGATED.format("d", "s#1", "")
"""%d and its token %dc: dead unless %p."""


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("line, live", [
    ("%t:3 = tf_executor.Switch %d, %q : tensor<f32>", -3), ("%t:3 = tf_executor.Switch %x, %q, %dc : tensor<f32>", 3),
    ("%t:2, %tc = tf_executor._SwitchN %d, %i of 2 : tensor<f32>", -3),
    ("%t:2, %tc = tf_executor._SwitchN %x, %i of 2 (%dc) : tensor<f32>", 3)])
@pytest.mark.parametrize("output", [0, 1])
def test_outputs_of_a_switch_with_a_dead_input_are_dead(line: str, live: int, output: int, p: bool) -> None:
    types = "%x: tensor<f32>, %p: tensor<i1>, %q: tensor<i1>, %i: tensor<i32>"
    source = text(SWITCH + DEAD + line + "\n", f"t#{output}", types)
    found = both(source, X, p, output == 1, np.int32(output))
    assert found == [live, live] if p else is_dead(found)


@pytest.mark.parametrize("p", [True, False])
def test_a_merge_of_dead_values_is_dead(p: bool) -> None:
    merge = NEGATED.format("e", "d", "") + "%m, %i, %mc = tf_executor.Merge %e, %d : tensor<f32>\n"
    found = both(text(SWITCH + DEAD + merge, "m"), X, p)
    assert found == [3, 3] if p else is_dead(found)


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("operands, values, numbers", [("%s#0, %d", (3, -3), (0, 1)), ("%d, %x", (3, -3), (1, 0)),
                                                       ("%x, %d", (3, 3), (0, 0))])
def test_a_merge_gives_the_first_live_input_and_its_number(operands: str, values: tuple[int, ...], numbers: tuple[int, ...],
                                                           p: bool) -> None:
    body = (SWITCH + DEAD + f"%m, %i, %mc = tf_executor.Merge {operands} : tensor<f32>\n"
            '%k, %kc = tf_executor.island wraps "tf.Cast"(%i) : (tensor<i32>) -> tensor<f32>\n')
    assert both(text(body, "m"), X, p) == [values[p]] * 2
    assert both(text(body, "k"), X, p) == [numbers[p]] * 2


@pytest.mark.parametrize("p", [True, False])
def test_a_loop_condition_is_what_it_is_given(p: bool) -> None:
    body = ("%l, %lc = tf_executor.LoopCond %p : tensor<i1>\n%s:3 = tf_executor.Switch %x, %l : tensor<f32>\n"
            + NEGATED.format("n", "s#1", "") + "%m:3 = tf_executor.Merge %n, %s#0 : tensor<f32>\n")
    assert both(text(body, "m#0"), X, p) == [-3 if p else 3] * 2


def test_operations_of_an_island_run_in_sequence() -> None:
    handle = "tensor<!tf_type.resource<tensor<f32>>>"
    body = (f"""%n, %nc = tf_executor.island {{
  %h = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {handle}
  "tf.AssignVariableOp"(%h, %x) : ({handle}, tensor<f32>) -> ()
  %a = "tf.ReadVariableOp"(%h) : ({handle}) -> tensor<f32>
  %b = "tf.Neg"(%a) : (tensor<f32>) -> tensor<f32>
  "tf.AssignVariableOp"(%h, %b) : ({handle}, tensor<f32>) -> ()
  %c = "tf.ReadVariableOp"(%h) : ({handle}) -> tensor<f32>
  %r = "tf.Sub"(%c, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  tf_executor.yield %r : tensor<f32>
}}
""")
    assert both(text(body, "n"), X, True) == [-6, -6]


@pytest.mark.parametrize("name, end", [("graph", "fetch"), ("island", "yield")])
def test_a_graph_and_an_island_have_one_block(name: str, end: str) -> None:
    """Control flow between blocks is that of functions."""
    inner = f"tf_executor.{name} {{\ncf.br ^end\n^end:\ntf_executor.{end}\n}}"
    around = inner if name == "graph" else f"tf_executor.graph {{\n{inner}\ntf_executor.fetch\n}}"
    with pytest.raises(Problem, match=f"tf_executor.{name} has one block, found 2"):
        read_module(f"func.func @main() {{\n{around}\nreturn\n}}")


def test_an_operation_runs_when_its_inputs_are_there() -> None:
    """The second operand comes two operations later than the first."""
    body = (NEGATED.format("a", "x", "") + NEGATED.format("b", "a", "") + NEGATED.format("c", "b", "")
            + '%n, %nc = tf_executor.island wraps "tf.Sub"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
            + NEGATED.format("m", "n", ""))
    assert both(text(body, "n"), X, True) == [0, 0]


@pytest.mark.parametrize("i", [0, 1, 2])
def test_a_switch_of_several_gives_its_data_to_the_output_of_its_index(i: int) -> None:
    body = ("%s:3, %c = tf_executor._SwitchN %x, %i of 3 : tensor<f32>\n" + NEGATED.format("n", "s#1", "")
            + "%m:3 = tf_executor.Merge %s#0, %n, %s#2 : tensor<f32>\n")
    assert both(text(body, "m#0", "%x: tensor<f32>, %i: tensor<i32>"), X, np.int32(i)) == [-3 if i == 1 else 3] * 2


def test_a_dead_fetch_is_a_problem_in_both_engines() -> None:
    assert is_dead(both(text(SWITCH, "s#0"), X, True))


def test_a_graph_may_stand_in_an_island_or_in_a_function_that_one_calls() -> None:
    inner = ("%i = tf_executor.graph {\n" + NEGATED.format("q", "x", "") + "tf_executor.fetch %q : tensor<f32>\n}\n")
    nested = "%n, %nc = tf_executor.island {\n" + inner + "tf_executor.yield %i : tensor<f32>\n}\n"
    assert both(text(nested, "n"), X, True) == [-3, -3]
    call = ('%n, %nc = tf_executor.island wraps "tf.PartitionedCall"(%x) <{f = @g}> : (tensor<f32>) -> tensor<f32>\n')
    function = "func.func private @g(%x: tensor<f32>) -> tensor<f32> {\n" + inner + "return %i : tensor<f32>\n}\n"
    assert both(text(call, "n", rest=function), X, True) == [-3, -3]


@pytest.mark.parametrize("line, message", [
    ('%n = "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>', "may not stand directly in a tf_executor.graph"),
    ("%n, %c = tf_executor.nonsense %x : tensor<f32>", "tf_executor has no operation nonsense"),
    ('%n = "tosa.abs"(%x) : (tensor<f32>) -> tensor<f32>', "may not stand directly in a tf_executor.graph")])
def test_a_graph_refuses_what_is_not_of_its_dialect(line: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        verify(read_module(text(line + "\n", "x")))


def test_a_graph_takes_no_operands_and_captures_what_it_reads() -> None:
    source = ('func.func @main(%x: tensor<f32>) -> tensor<f32> {\n%0 = "tf_executor.graph"(OPERANDS) ({\n'
              '"tf_executor.fetch"(%x) : (tensor<f32>) -> ()\n}) : (TYPES) -> tensor<f32>\nreturn %0 : tensor<f32>\n}')
    assert both(source.replace("OPERANDS", "").replace("TYPES", ""), X) == [3, 3]
    with pytest.raises(Problem, match="takes no operands"):
        verify(read_module(source.replace("OPERANDS", "%x").replace("TYPES", "tensor<f32>")))


def test_a_sink_gives_its_source_the_sources_type() -> None:
    with pytest.raises(Problem, match="gives a tensor<f32> to a Source of tensor<i32>"):
        verify(read_module(text("%v, %t, %c = tf_executor.NextIteration.Source : tensor<i32>\n"
                                "tf_executor.NextIteration.Sink[%t] %x : tensor<f32>\n", "x")))


def test_branches_of_different_types_are_a_problem() -> None:
    function = ("func.func private @{0}(%x: tensor<f32>) -> tensor<{1}> {{\n"
                '%0 = "tf.{2}"(%x) : (tensor<f32>) -> tensor<{1}>\nreturn %0 : tensor<{1}>\n}}\n')
    source = ("func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n"
              '%0 = "tf.If"(%p, %x) <{then_branch = @f, else_branch = @g, is_stateless = true}> : '
              "(tensor<i1>, tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}\n"
              + function.format("f", "f32", "Neg") + function.format("g", "i32", "Cast"))
    with pytest.raises(Problem, match="in one branch and tensor<i32> in the other"):
        to_tosa(read_module(source), "main")
