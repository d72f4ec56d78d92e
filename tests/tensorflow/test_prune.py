"""What nothing needs is dropped: of an executor graph what its fetches do not reach, elsewhere what has no effect."""
from __future__ import annotations

import pathlib

import pytest
import tosaic
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.prune import prune
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .cases import CORPUS, DATA, in_graph, module_of, name_of


def spellings(module: Module) -> list[str]:
    return [o.op.name or o.op.spelling for f in module.functions for o in f.body.walk()]  # type: ignore[attr-defined]


def kept(body: str, fetch: str = "%x : tensor<3xf32>") -> list[str]:
    """The operations that stay of a graph of these."""
    text = in_graph(body).replace("tf_executor.fetch %x : tensor<3xf32>", f"tf_executor.fetch {fetch}")
    return [n for n in spellings(prune(read_module(text))) if n not in ("tf_executor.graph", "tf_executor.island")]


@pytest.mark.parametrize("path", CORPUS, ids=name_of)
def test_a_pruned_graph_is_sound_and_pruning_it_again_changes_nothing(path: pathlib.Path) -> None:
    module = prune(module_of(path))
    verify(module)
    text = print_module(module)
    assert print_module(prune(read_module(text))) == text


def test_operations_that_no_fetch_reaches_are_dropped() -> None:
    assert kept('%a, %c = tf_executor.island wraps "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
                '%b, %d = tf_executor.island wraps "tf.Abs"(%x) : (tensor<3xf32>) -> tensor<3xf32>',
                "%b : tensor<3xf32>") == ["tf.Abs"]


def test_a_write_that_no_fetch_reaches_is_dropped_and_one_that_is_reached_by_control_stays() -> None:
    body = ('%a = tf_executor.island wraps "tf.AssignVariableOp"(%h, %x) : '
            "(tensor<!tf_type.resource<tensor<3xf32>>>, tensor<3xf32>) -> ()")
    assert kept(body) == []
    assert kept(body, "%x, %a : tensor<3xf32>, !tf_executor.control") == ["tf.AssignVariableOp"]
    assert kept(f"{body}\n%t = tf_executor.ControlTrigger %a", "%x, %t : tensor<3xf32>, !tf_executor.control") == [
        "tf.AssignVariableOp", "tf_executor.ControlTrigger"]


def test_a_loop_that_is_fetched_keeps_its_sink() -> None:
    text = (DATA / "tensorflow" / "w_while_lib" / "executor.mlir").read_text()
    module = read_module(text)
    names = spellings(prune(module))
    assert names.count("tf_executor.NextIteration.Sink") == names.count("tf_executor.NextIteration.Source") == 2


def test_a_receive_keeps_what_is_sent_to_it() -> None:
    body = ('%s = tf_executor.Send %x {tensor_name = "a"} : tensor<3xf32>\n'
            '%t = tf_executor.Send %x {tensor_name = "b"} : tensor<3xf32>\n'
            '%r, %c = tf_executor.Recv {tensor_name = "a"} : tensor<3xf32>')
    assert kept(body, "%r : tensor<3xf32>") == ["tf._Send", "tf._Recv"]


def test_what_an_island_does_not_give_back_is_dropped() -> None:
    assert kept("%a, %c = tf_executor.island {\n"
                '%n = "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"tf.NoOp"() : () -> ()\n'
                '%m = "tf.Abs"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
                "tf_executor.yield %m : tensor<3xf32>\n}", "%a : tensor<3xf32>") == ["tf.Abs"]


def test_an_assertion_of_an_island_that_is_reached_stays() -> None:
    body = '%a = tf_executor.island wraps "tf.Assert"(%p) : (tensor<i1>) -> ()'
    assert kept(body) == []
    assert kept(body, "%x, %a : tensor<3xf32>, !tf_executor.control") == ["tf.Assert"]


def functional(body: str) -> list[str]:
    arguments = "%x: tensor<f32>, %p: tensor<i1>, %h: tensor<!tf_type.resource<tensor<f32>>>"
    return spellings(prune(read_module(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}")))


@pytest.mark.parametrize(("text", "stays"), [
    ('%0 = "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>', False),
    ('%0 = "tf.NobodyKnows"(%x) : (tensor<f32>) -> tensor<f32>', False),
    ('"tf.NobodyKnows"(%x) : (tensor<f32>) -> ()', True),
    ('"tf.NoOp"() : () -> ()', False),
    ('"tf.AssignVariableOp"(%h, %x) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()', True),
    ('%0 = "tf.ReadVariableOp"(%h) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>', False),
    ('%0 = "tf.StatefulPartitionedCall"(%x) <{f = @f}> : (tensor<f32>) -> tensor<f32>', True),
    ('%0 = "tf.PartitionedCall"(%x) <{f = @f}> : (tensor<f32>) -> tensor<f32>', False),
    ('%0 = "tf.If"(%p, %x) <{is_stateless = true, then_branch = @f}> : (tensor<i1>, tensor<f32>) -> tensor<f32>', False),
    ('%0 = "tf.If"(%p, %x) <{is_stateless = false, then_branch = @f}> : (tensor<i1>, tensor<f32>) -> tensor<f32>', True)])
def test_an_operation_of_tensorflow_stays_if_it_can_be_seen(text: str, stays: bool) -> None:
    assert bool(functional(text)) is stays


@pytest.mark.parametrize(("case", "form", "operator"), [
    ("f_mlp", "functional", "tf.MatMul"), ("w_seed_loop", "executor", "tf.AddV2"), ("f_cond", "regions", "tf.Tanh"),
    ("f_cond", "functional", "tf.Tanh"), ("v_counter", "functional", "tf.AssignAddVariableOp")])
def test_compiling_what_is_needed_names_the_operation_and_its_line(case: str, form: str, operator: str) -> None:
    """An operation that nobody knows, in a function, an executor's loop, a region, a function that a branch calls."""
    text = (DATA / "tensorflow" / case / f"{form}.mlir").read_text().replace(f'"{operator}"', '"tf.NobodyKnows"', 1)
    with pytest.raises(Problem) as caught:
        tosaic.load(text).entry().compile()
    problem = caught.value
    assert problem.message.endswith("tf.NobodyKnows cannot be compiled")
    assert problem.position is not None
    assert '"tf.NobodyKnows"' in text.splitlines()[problem.position.line - 1]


def test_an_operation_that_nothing_needs_does_not_keep_a_function_from_compiling() -> None:
    text = ('func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n'
            '%0 = "tf.NobodyKnows"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
            "%1 = tosa.abs %x : (tensor<3xf32>) -> tensor<3xf32>\nreturn %1 : tensor<3xf32>\n}")
    assert spellings(prune(read_module(text))) == ["tosa.abs"]
