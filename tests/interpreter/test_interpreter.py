"""What the interpreter asks of its inputs, what it reports, and what it tells an observer."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.data import ConstShape
from tosaic.lowering.dialects.tosa.layout import Reshape
from tosaic.lowering.dialects.tosa.reduction import ReduceSum
from tosaic.lowering.graph.graph import Block, Function, Module, Operation, Value
from tosaic.lowering.graph.operator import Op, UnknownOp
from tosaic.lowering.graph.types import BF16, F32, I1, I4, I8, I32, I48, OpaqueType, TensorType
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, interpret

from .programs import NUMBER, TRUTH, Graph, at, below, module, number, returning


def passing(*types: Any) -> Module:
    """A function that returns its arguments."""
    graph = Graph()
    return module(graph.finish(*graph.take(types)))


def test_it_computes_what_the_operators_compute() -> None:
    graph = Graph()
    x = graph.argument(TensorType((2, 3), I32))
    total, = graph.add(ReduceSum(1), x)
    program = module(graph.finish(graph.plus(total, total), x))
    out = interpret(program, None, [np.arange(6, dtype=np.int32).reshape(2, 3)])
    assert out[0].tolist() == [[6], [24]] and out[1].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_function_is_chosen_by_name_or_given() -> None:
    one, two = passing(NUMBER).functions[0], module(Graph().finish(), name="two").functions[0]
    both = Module((one, two))
    assert interpret(both, "two", []) == () and interpret(both, None, [number(1)])[0].item() == 1
    assert interpret(both, two, []) == ()
    with pytest.raises(Problem, match="the module has no function three"):
        interpret(both, "three", [])


@pytest.mark.parametrize("element", [I1, I4, I8, I32, I48, F32, BF16])
def test_every_element_type_passes(element: Any) -> None:
    x = np.ones((2, 3), element.dtype)
    out, = interpret(passing(TensorType((2, 3), element)), None, [x])
    assert out.dtype == x.dtype and (out == x).all() and out is not x


@pytest.mark.parametrize(("types", "inputs", "message"), [
    ((NUMBER,), [], "main takes 1 inputs, not 0"),
    ((), [number(1)], "main takes 0 inputs, not 1"),
    ((NUMBER,), [np.int64(1)], "input arg0 is an array of int64, not of int32"),
    ((TensorType((2,), F32),), [np.zeros(2)], "input arg0 is an array of float64, not of float32"),
    ((TensorType((2,), F32),), [np.zeros(2, ">f4")], "input arg0 is an array of >f4, not of float32"),
    ((NUMBER, TensorType((2,), I32)), [number(1), number(1)], r"arg1 has shape \[\], the argument is tensor<2xi32>"),
    ((TensorType((2, None), I32),), [np.zeros((3, 1), np.int32)], r"input arg0 has shape \[3, 1\]"),
    ((OpaqueType("none"),), [number(1)], "input arg0 is a none, not a tensor"),
    ((TensorType((2,), F32),), [[[1.0], 2.0]], "input arg0 is not an array"),
])
def test_inputs_are_checked(types: Any, inputs: list[Any], message: str) -> None:
    with pytest.raises(Problem, match=message):
        interpret(passing(*types), None, inputs)


def test_unknown_extents_take_any() -> None:
    run = Interpreter(passing(TensorType((None, 2), I32)))
    assert [run(np.zeros((n, 2), np.int32))[0].shape for n in (1, 5)] == [(1, 2), (5, 2)]


def test_a_run_changes_none_of_its_inputs() -> None:
    graph = Graph()
    x = graph.argument(TensorType((3,), I32))
    given = np.array([1, 2, 3], np.int32)
    given.flags.writeable = False
    assert interpret(module(graph.finish(graph.plus(x, x))), None, [given])[0].tolist() == [2, 4, 6]


def test_a_problem_has_the_place_of_its_operator() -> None:
    unknown = Operation(UnknownOp("tosa.custom"), (), (Value("r", NUMBER),), position=at(17))
    with pytest.raises(Problem, match=r"operator tosa.custom is not known") as caught:
        interpret(Module((Function("main", Block((), (unknown,), ()), ()),)), None, [])
    assert str(caught.value.position) == "program.mlir:17:1" and caught.value.unsupported


class Wrong(Op):
    """An operator whose type rule and reference disagree."""

    def infer(self, x: Any) -> TensorType:
        return NUMBER

    def reference(self, x: Any) -> Any:
        return np.zeros(2, np.int32)


def test_a_result_that_is_not_what_the_graph_declares_is_reported() -> None:
    graph = Graph()
    result, = graph.add(Wrong(), graph.argument(NUMBER), position=at(5))
    with pytest.raises(Problem, match=r"is declared as tensor<i32>, its operator gives int32 of shape \[2\]") as caught:
        interpret(module(graph.finish(result)), None, [number(1)])
    assert str(caught.value.position) == "program.mlir:5:1"


def test_an_observer_sees_every_operation_and_its_results() -> None:
    graph, body = Graph(), Graph()
    step, = body.take([NUMBER])
    yields = body.finish(body.plus(step, body.number(1)))
    last, = graph.while_loop(below(2), yields, graph.number(0))
    graph.cond_if(graph.truth(True), returning(last), returning(last))
    seen: list[tuple[str, list[Any]]] = []
    interpret(module(graph.finish(last)), None, [],
              observe=lambda operation, results: seen.append((operation.op.name, [r.tolist() for r in results])))
    iteration = [("tosa.const", [2]), ("tosa.greater", [True])]
    assert seen == [("tosa.const", [0]), *iteration, ("tosa.const", [1]), ("tosa.add", [1]), *iteration, ("tosa.const", [1]),
                    ("tosa.add", [2]), iteration[0], ("tosa.greater", [False]), ("tosa.while_loop", [2]),
                    ("tosa.const", [True]), ("tosa.cond_if", [2])]


def test_a_floating_point_exception_is_not_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    graph = Graph()
    x = graph.argument(TensorType((2,), F32))
    with np.errstate(all="warn"):
        out, = interpret(module(graph.finish(graph.plus(x, x))), None, [np.array([3e38, np.nan], np.float32)])
    assert out[0] == np.inf and np.isnan(out[1]) and not recwarn.list


def test_shapes_are_values_too() -> None:
    graph = Graph()
    x = graph.argument(TensorType((2, 3), I32))
    shape, = graph.add(ConstShape(np.array([3, 2], np.int64)))
    out, = interpret(module(graph.finish(*graph.add(Reshape(), x, shape))), None, [np.zeros((2, 3), np.int32)])
    assert out.shape == (3, 2)


def test_a_truth_may_be_an_output() -> None:
    assert interpret(passing(TRUTH), None, [np.array(True)])[0].item() is True
