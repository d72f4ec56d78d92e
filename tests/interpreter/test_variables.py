"""Variables in the interpreter: the rules of TOSA's stateful operators."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.data import Identity
from tosaic.lowering.graph.types import F32, I8, I32, TensorType
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables, interpret

from .programs import NUMBER, Graph, below, declaration, module, number, returning

OTHERS = [TensorType((), I8), TensorType((), F32), TensorType((1,), I32), TensorType((2, 1), I32)]


def counter(*, initial: int | None = 0) -> Any:
    """Adds its argument to @count and returns what it was."""
    graph = Graph()
    step = graph.argument(NUMBER)
    old = graph.read("count")
    graph.write("count", graph.plus(old, step))
    return module(graph.finish(old), declaration("count", NUMBER, initial))


def writer(type: TensorType = NUMBER, *, declares: bool = True, symbol: str = "count") -> Any:
    graph = Graph()
    graph.write(symbol, graph.argument(type))
    return module(graph.finish(), *([declaration(symbol, type)] if declares else []))


def reader(type: TensorType = NUMBER, *, declares: bool = True, symbol: str = "count") -> Any:
    graph = Graph()
    value = graph.read(symbol, type)
    return module(graph.finish(value), *([declaration(symbol, type)] if declares else []))


def test_a_variable_keeps_its_value_between_runs() -> None:
    run = Interpreter(counter())
    assert [run(number(n))[0].item() for n in (5, 3, 0, 1)] == [0, 5, 8, 8]


def test_without_a_store_the_state_lives_as_long_as_one_run() -> None:
    assert [interpret(counter(), None, [number(5)])[0].item() for _ in range(2)] == [0, 0]


def test_the_initial_value_is_copied_once() -> None:
    variables = InterpreterVariables()
    assert interpret(counter(initial=10), None, [number(1)], variables)[0].item() == 10
    assert interpret(counter(initial=99), None, [number(1)], variables)[0].item() == 11


def test_two_programs_share_a_variable_of_one_name() -> None:
    variables = InterpreterVariables()
    first, second = Interpreter(counter(), variables=variables), Interpreter(counter(), variables=variables)
    assert [run(number(1))[0].item() for run in (first, second, first)] == [0, 1, 2]


def test_two_stores_do_not_meet() -> None:
    first, second = Interpreter(counter()), Interpreter(counter())
    assert [run(number(1))[0].item() for run in (first, second, first)] == [0, 0, 1]


def test_a_read_before_any_write_is_a_fault() -> None:
    with pytest.raises(Problem, match="variable @count is read before it is written") as caught:
        interpret(reader(), None, [])
    assert caught.value.kind == "variable" and str(caught.value.position) == "program.mlir:2:1"


def test_a_write_makes_a_variable_readable_in_the_next_run() -> None:
    variables = InterpreterVariables()
    interpret(writer(), None, [number(7)], variables)
    assert interpret(reader(), None, [], variables)[0].item() == 7


def test_a_read_needs_no_declaration_in_its_own_run() -> None:
    variables = InterpreterVariables()
    interpret(writer(), None, [number(7)], variables)
    assert interpret(reader(declares=False), None, [], variables)[0].item() == 7


def test_a_read_of_what_nothing_declares_is_a_fault() -> None:
    with pytest.raises(Problem, match="variable @count is read, but nothing declares it"):
        interpret(reader(declares=False), None, [])


def test_a_write_to_what_nothing_declares_is_a_fault() -> None:
    with pytest.raises(Problem, match="variable @count is written, but nothing declares it") as caught:
        interpret(writer(declares=False), None, [number(1)])
    assert str(caught.value.position) == "program.mlir:3:1"


def test_a_write_needs_a_declaration_in_its_own_run() -> None:
    variables = InterpreterVariables()
    interpret(writer(), None, [number(1)], variables)
    with pytest.raises(Problem, match="variable @count is written in a run that does not declare it"):
        interpret(writer(declares=False), None, [number(2)], variables)
    assert variables.snapshot()["count"] == 1


def test_a_second_declaration_in_one_run_is_a_fault_that_names_its_place() -> None:
    graph = Graph()
    graph.declare("count", line=40)
    with pytest.raises(Problem, match=r"tosa.variable declares @count for the second time in one run") as caught:
        interpret(module(graph.finish(), declaration("count", NUMBER, line=1)), None, [])
    assert str(caught.value.position) == "program.mlir:40:1"


def test_a_second_declaration_at_module_level_is_a_fault() -> None:
    twice = module(Graph().finish(), declaration("count", NUMBER, 1), declaration("count", NUMBER, 1, line=9))
    with pytest.raises(Problem, match="for the second time") as caught:
        interpret(twice, None, [])
    assert str(caught.value.position) == "program.mlir:9:1"


def test_a_declaration_in_a_function_holds_from_there_on() -> None:
    graph = Graph()
    graph.declare("count", initial=4)
    value = graph.read("count")
    graph.write("count", graph.plus(value, value))
    run = Interpreter(module(graph.finish(value)))
    assert [run()[0].item() for _ in range(3)] == [4, 8, 16]


def test_a_write_above_the_declaration_is_a_fault_in_every_run() -> None:
    graph = Graph()
    graph.write("count", graph.number(1))
    graph.declare("count", initial=4)
    above = module(graph.finish())
    variables = InterpreterVariables()
    with pytest.raises(Problem, match="nothing declares it"):
        interpret(above, None, [], variables)
    interpret(writer(), None, [number(1)], variables)
    with pytest.raises(Problem, match="in a run that does not declare it"):
        interpret(above, None, [], variables)


def test_a_loop_that_declares_is_a_fault_in_its_second_iteration() -> None:
    body = Graph()
    step, = body.take([NUMBER])
    body.declare("inner", initial=0, line=30)
    graph = Graph()
    last, = graph.while_loop(below(2), body.finish(body.plus(step, body.number(1))), graph.number(0))
    with pytest.raises(Problem, match="@inner for the second time") as caught:
        interpret(module(graph.finish(last)), None, [])
    assert str(caught.value.position) == "program.mlir:30:1"


@pytest.mark.parametrize("type", OTHERS, ids=str)
def test_type_and_shape_of_a_read_must_be_those_of_the_variable(type: TensorType) -> None:
    variables = InterpreterVariables()
    interpret(writer(), None, [number(1)], variables)
    with pytest.raises(Problem, match="variable @count is tensor<i32>, it is read as"):
        interpret(reader(type), None, [], variables)


@pytest.mark.parametrize("type", OTHERS, ids=str)
def test_type_and_shape_of_a_write_must_be_those_of_the_variable(type: TensorType) -> None:
    variables = InterpreterVariables()
    interpret(writer(), None, [number(1)], variables)
    with pytest.raises(Problem, match="variable @count is tensor<i32>, what is written is"):
        interpret(writer(type), None, [np.zeros(type.dims, type.element.dtype)], variables)
    assert variables.snapshot()["count"] == 1


def test_a_run_that_fails_leaves_every_variable_as_it_was() -> None:
    graph = Graph()
    graph.write("a", graph.number(5))
    graph.write("b", graph.number(6))
    failing = module(graph.finish(graph.read("c")), *(declaration(n, NUMBER, None if n == "c" else 1) for n in "abc"))
    variables = InterpreterVariables()
    with pytest.raises(Problem, match="@c is read before it is written"):
        interpret(failing, None, [], variables)
    assert variables.snapshot() == {}
    interpret(writer(symbol="a"), None, [number(3)], variables)
    with pytest.raises(Problem, match="@c is read before it is written"):
        interpret(failing, None, [], variables)
    assert variables.snapshot() == {"a": 3}


def test_a_run_may_fail_and_the_next_may_succeed() -> None:
    run = Interpreter(counter())
    run(number(2))
    with pytest.raises(Problem, match="shape"):
        run(np.zeros(3, np.int32))
    assert run(number(1))[0].item() == 2


def test_reads_and_writes_happen_in_order() -> None:
    graph = Graph()
    values = [graph.read("count")]
    for step in (1, 10):
        graph.write("count", graph.plus(values[-1], graph.number(step)))
        values.append(graph.read("count"))
    run = Interpreter(module(graph.finish(*values), declaration("count", NUMBER, 0)))
    assert [v.item() for v in run()] == [0, 1, 11]
    assert [v.item() for v in run()] == [11, 12, 22]


def test_a_dead_branch_writes_no_variable() -> None:
    then, graph = Graph(), Graph()
    then.write("count", then.number(7))
    graph.cond_if(graph.argument(TensorType((), graph.truth(True).tensor.element)), then.finish(), returning())
    run = Interpreter(module(graph.finish(), declaration("count", NUMBER, 0)))
    run(np.array(False))
    assert run.variables.snapshot()["count"] == 0
    run(np.array(True))
    assert run.variables.snapshot()["count"] == 7


def test_a_loop_writes_in_every_iteration() -> None:
    body = Graph()
    step, = body.take([NUMBER])
    body.write("count", body.plus(body.read("count"), step))
    graph = Graph()
    graph.while_loop(below(5), body.finish(body.plus(step, body.number(1))), graph.number(0))
    run = Interpreter(module(graph.finish(graph.read("count")), declaration("count", NUMBER, 100)))
    assert [run()[0].item() for _ in range(2)] == [110, 120]


def test_state_and_results_are_copies() -> None:
    type = TensorType((2,), I32)
    graph = Graph()
    given = graph.argument(type)
    graph.write("s", given)
    same, = graph.add(Identity(), given)
    run = Interpreter(module(graph.finish(same, graph.read("s", type)), declaration("s", type)))
    x = np.array([1, 2], np.int32)
    a, b = run(x)
    x[:] = a[:] = b[:] = 9
    snapshot = run.variables.snapshot()["s"]
    assert snapshot is not None and snapshot.tolist() == [1, 2]
    snapshot[:] = 9
    assert interpret(reader(type, symbol="s"), None, [], run.variables)[0].tolist() == [1, 2]


def test_a_snapshot_has_none_for_what_is_not_written() -> None:
    variables = InterpreterVariables()
    interpret(module(Graph().finish(), declaration("a", NUMBER), declaration("b", NUMBER, 3)), None, [], variables)
    assert variables.snapshot() == {"a": None, "b": 3}


def test_a_variable_of_unknown_extents_cannot_be_interpreted() -> None:
    with pytest.raises(Problem, match="its shape must be known"):
        interpret(module(Graph().finish(), declaration("a", TensorType((None, 2), F32))), None, [])
