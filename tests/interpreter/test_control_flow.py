"""COND_IF and WHILE_LOOP in the interpreter, and their type rules."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.control_flow import CondIf, WhileLoop
from tosaic.lowering.dialects.tosa.data import Identity
from tosaic.lowering.graph.graph import Block, Value, captures
from tosaic.lowering.graph.types import F32, I1, I32, TensorType
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, interpret

from .programs import NUMBER, TRUTH, Graph, below, module, number, returning


def adding(amount: int) -> Block:
    """A region of one argument that yields it with something added."""
    graph = Graph()
    x, = graph.take([NUMBER])
    return graph.finish(graph.plus(x, graph.number(amount)))


# ---- cond_if -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1, 1, 1)], ids=str)
def test_cond_if_runs_one_region_on_its_operands(shape: tuple[int, ...]) -> None:
    graph = Graph()
    condition, x = graph.take([TensorType(shape, I1), NUMBER])
    run = Interpreter(module(graph.finish(*graph.cond_if(condition, adding(1), adding(-1), x))))
    assert run(np.full(shape, True), number(10))[0].item() == 11
    assert run(np.full(shape, False), number(10))[0].item() == 9


def test_a_region_may_use_values_of_the_blocks_around() -> None:
    graph = Graph()
    condition, x, y = graph.take([TRUTH, NUMBER, NUMBER])
    then = Graph()
    total = then.plus(x, y)
    result, = graph.cond_if(condition, then.finish(total), returning(y))
    run = Interpreter(module(graph.finish(result)))
    assert captures(graph.operations[-1]) == (x, y)
    assert run(np.array(True), number(3), number(4))[0].item() == 7
    assert run(np.array(False), number(3), number(4))[0].item() == 4


def test_a_region_may_yield_several_values_or_its_own_arguments() -> None:
    swap, keep = Graph(), Graph()
    a, b = swap.take([NUMBER, NUMBER])
    c, d = keep.take([NUMBER, NUMBER])
    graph = Graph()
    condition, x, y = graph.take([TRUTH, NUMBER, NUMBER])
    results = graph.cond_if(condition, swap.finish(b, a), keep.finish(c, d), x, y)
    run = Interpreter(module(graph.finish(*results)))
    assert [v.item() for v in run(np.array(True), number(1), number(2))] == [2, 1]
    assert [v.item() for v in run(np.array(False), number(1), number(2))] == [1, 2]


def test_branches_nest() -> None:
    graph = Graph()
    p, q = graph.take([TRUTH, TRUTH])

    def inner(yes: int, no: int) -> Block:
        block, then, otherwise = Graph(), Graph(), Graph()
        result, = block.cond_if(q, then.finish(then.number(yes)), otherwise.finish(otherwise.number(no)))
        return block.finish(result)

    result, = graph.cond_if(p, inner(1, 2), inner(3, 4))
    run = Interpreter(module(graph.finish(result)))
    found = [run(np.array(a), np.array(b))[0].item() for a in (True, False) for b in (True, False)]
    assert found == [1, 2, 3, 4]


# ---- while_loop --------------------------------------------------------------------------------------------------
def test_a_loop_runs_while_its_condition_holds() -> None:
    body, graph = Graph(), Graph()
    i, total = body.take([NUMBER, NUMBER])
    yields = body.plus(i, body.number(1)), body.plus(total, i)
    limit = graph.argument(NUMBER)
    results = graph.while_loop(below(limit, 2), body.finish(*yields), graph.number(0), graph.number(0))
    run = Interpreter(module(graph.finish(*results)))
    assert [[v.item() for v in run(number(n))] for n in (0, 1, 5)] == [[0, 0], [1, 0], [5, 10]]


def test_a_loop_that_never_runs_gives_its_operands() -> None:
    graph = Graph()
    x = graph.argument(NUMBER)
    result, = graph.while_loop(below(-100), adding(1), x)
    assert interpret(module(graph.finish(result)), None, [number(7)])[0].item() == 7


def test_a_loop_may_exchange_its_values() -> None:
    body, graph = Graph(), Graph()
    i, a, b = body.take([NUMBER] * 3)
    step = body.plus(i, body.number(1))
    start = map(graph.number, (0, 10, 20))
    results = graph.while_loop(below(3, 3), body.finish(step, b, a), *start)
    found = interpret(module(graph.finish(*results)), None, [])
    assert [v.item() for v in found] == [3, 20, 10]


def test_loops_nest_and_use_values_from_all_around() -> None:
    """sum over i < n of sum over j < i of (i + k)"""
    graph = Graph()
    n, k = graph.take([NUMBER, NUMBER])
    outer = Graph()
    i, total = outer.take([NUMBER, NUMBER])
    inner = Graph()
    j, partial = inner.take([NUMBER, NUMBER])
    inner_body = inner.finish(inner.plus(j, inner.number(1)), inner.plus(partial, inner.plus(i, k)))
    _, sum_of_row = outer.while_loop(below(i, 2), inner_body, outer.number(0), total)
    outer_body = outer.finish(outer.plus(i, outer.number(1)), sum_of_row)
    _, result = graph.while_loop(below(n, 2), outer_body, graph.number(0), graph.number(0))
    run = Interpreter(module(graph.finish(result)))
    for size, offset in ((0, 1), (1, 1), (4, 0), (5, 100)):
        assert run(number(size), number(offset))[0].item() == sum(i * (i + offset) for i in range(size))


def test_a_branch_in_a_loop_sees_the_values_of_its_iteration() -> None:
    body, graph = Graph(), Graph()
    i, total = body.take([NUMBER, NUMBER])
    then, otherwise = Graph(), Graph()
    doubled, = body.cond_if(body.greater(i, body.number(2)), then.finish(then.plus(total, i)),
                            otherwise.finish(total))
    results = graph.while_loop(below(6, 2), body.finish(body.plus(i, body.number(1)), doubled), graph.number(0),
                               graph.number(0))
    assert [v.item() for v in interpret(module(graph.finish(*results)), None, [])] == [6, 3 + 4 + 5]


def test_constants_in_a_body_are_there_in_every_turn_and_every_run() -> None:
    graph = Graph()
    result, = graph.while_loop(below(10), adding(3), graph.argument(NUMBER))
    run = Interpreter(module(graph.finish(result)))
    assert [run(number(n))[0].item() for n in (0, 1, 0)] == [12, 10, 12]


# ---- type rules --------------------------------------------------------------------------------------------------
def yielding(*types: TensorType, takes: tuple[TensorType, ...] = ()) -> Block:
    return Block(tuple(Value(f"a{i}", t) for i, t in enumerate(takes)), (), tuple(Value("y", t) for t in types))


VECTOR, FLOAT = TensorType((2,), I32), TensorType((), F32)
BAD: list[tuple[Any, tuple[TensorType, ...], tuple[Block, ...], str]] = [
    (CondIf(), (TRUTH,), (yielding(), yielding(), yielding()), "tosa.cond_if has 3 regions, not two"),
    (CondIf(), (), (yielding(), yielding()), "a cond_if needs a condition"),
    (CondIf(), (NUMBER,), (yielding(), yielding()), "the condition must be a tensor of i1, not tensor<i32>"),
    (CondIf(), (TensorType((2,), I1),), (yielding(), yielding()), "the condition must have one element"),
    (CondIf(), (TRUTH, NUMBER), (yielding(takes=(NUMBER,)), yielding()), "arguments of the region for false are 0"),
    (CondIf(), (TRUTH, NUMBER), (yielding(takes=(VECTOR,)), yielding(takes=(NUMBER,))),
     "number 0 of the arguments of the region for true is tensor<2xi32>, of the operands tensor<i32>"),
    (CondIf(), (TRUTH,), (yielding(NUMBER), yielding()), "what the region for false yields are 0"),
    (CondIf(), (TRUTH,), (yielding(NUMBER), yielding(FLOAT)), "number 0 of what the region for false yields is"),
    (CondIf(), (TRUTH,), (yielding(NUMBER), yielding(VECTOR)), "number 0 of what the region for false yields is"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH, takes=(NUMBER,)),), "tosa.while_loop has 1 regions, not two"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH), yielding(NUMBER, takes=(NUMBER,))), "condition's region are 0"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH, takes=(FLOAT,)), yielding(NUMBER, takes=(NUMBER,))),
     "number 0 of the arguments of the condition's region is tensor<f32>"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH, takes=(NUMBER,)), yielding(NUMBER, takes=(VECTOR,))),
     "number 0 of the arguments of the body is tensor<2xi32>"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH, takes=(NUMBER,)), yielding(takes=(NUMBER,))), "the body yields are 0"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH, takes=(NUMBER,)), yielding(FLOAT, takes=(NUMBER,))),
     "number 0 of what the body yields is tensor<f32>"),
    (WhileLoop(), (NUMBER,), (yielding(takes=(NUMBER,)), yielding(NUMBER, takes=(NUMBER,))), "yields 0 values"),
    (WhileLoop(), (NUMBER,), (yielding(TRUTH, TRUTH, takes=(NUMBER,)), yielding(NUMBER, takes=(NUMBER,))),
     "yields 2 values, not one"),
    (WhileLoop(), (NUMBER,), (yielding(NUMBER, takes=(NUMBER,)), yielding(NUMBER, takes=(NUMBER,))),
     "must be a tensor of i1, not tensor<i32>"),
    (WhileLoop(), (NUMBER,), (yielding(TensorType((3,), I1), takes=(NUMBER,)), yielding(NUMBER, takes=(NUMBER,))),
     "must have one element"),
]


@pytest.mark.parametrize(("op", "operands", "regions", "message"), BAD, ids=[f"{b[0].name}: {b[3]}" for b in BAD])
def test_control_flow_refuses(op: Any, operands: tuple[TensorType, ...], regions: tuple[Block, ...], message: str
                              ) -> None:
    with pytest.raises(Problem, match=message):
        op.region_types([Value(f"x{i}", t) for i, t in enumerate(operands)], regions)


def nested(depth: int) -> Block:
    graph = Graph()
    if depth:
        graph.cond_if(graph.truth(True), nested(depth - 1), returning())
    return graph.finish()


def test_control_flow_nests_six_deep_and_no_deeper() -> None:
    interpret(module(nested(6)), None, [])
    with pytest.raises(Problem, match="control flow is nested 7 deep, 6 is the most"):
        nested(7)


def test_an_operator_without_regions_takes_none() -> None:
    graph = Graph()
    with pytest.raises(Problem, match=r"tosa.identity takes no regions"):
        graph.add(Identity(), graph.number(1), regions=(returning(),))


def test_extents_that_differ_between_regions_are_not_known() -> None:
    some = TensorType((None, 3), F32)
    known = TensorType((2, 3), F32)
    condition = Value("c", TRUTH)
    assert CondIf().region_types([condition], [yielding(known), yielding(some)]) == (some,)
    assert CondIf().region_types([condition], [yielding(known), yielding(known)]) == (known,)
    loop = [yielding(TRUTH, takes=(some,)), yielding(some, takes=(some,))]
    assert WhileLoop().region_types([Value("x", known)], loop) == (some,)
