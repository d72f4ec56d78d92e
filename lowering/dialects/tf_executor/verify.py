"""The verifier of single operations of the executor dialect: operands, results, types, and the region that each operation may
be in. A violation is a Problem at the operation.

`verify_graph.py` has the rules of a whole graph: terminators, pairs of Source and Sink, frames. The verifier of all graphs
finds uses before definitions.
"""
from __future__ import annotations

from ....runtime.errors import Label, Position, Problem
from ...graph.graph import Operation, Value, captures
from ...graph.operator import UnknownOp
from ...graph.types import I1, TensorType, Type
from ..tf.types import can_be_equal, is_tensor, is_variant
from .operators import (
    Enter,
    ExecutorOp,
    Exit,
    Graph,
    Island,
    LoopCond,
    Merge,
    NextIterationSink,
    NextIterationSource,
    Switch,
    SwitchN,
    control_operands,
    data_operands,
    data_results,
)
from .types import CONTROL, INDEX_TYPE, PREDICATE, TOKEN

MOST_OUTPUTS = 10_000
"""Maximum number of outputs of a _SwitchN."""


def wrong(operation: Operation, rule: str, position: Position | None = None, help: str | None = None,
          label: Label | None = None) -> Problem:
    """Return a Problem that names the operation and its rule."""
    name = operation.op.name or getattr(operation.op, "spelling", "")
    return Problem(f"{name} {rule}", position or operation.position, kind="executor", help=help,
                   labels=(label,) if label else ())


def verify_node(operation: Operation) -> None:
    """Check the rules of one operation of a graph, independent of its surroundings."""
    op = operation.op
    if not isinstance(op, ExecutorOp):
        raise foreign(operation)
    if isinstance(op, Graph):
        raise wrong(operation, "may not stand directly in another tf_executor.graph", help="put it into an island")
    check_regions(operation, op)
    check_operands(operation, op)
    if isinstance(op, Island):
        check_yields(operation)
    check_results(operation)
    match op:
        case Island():
            check_island(operation)
        case Switch():
            check_switch(operation)
        case SwitchN():
            check_switch_n(operation, op)
        case Merge():
            check_merge(operation)
        case NextIterationSource():
            check_source(operation)
        case LoopCond():
            check_loop_condition(operation)
        case Enter() | Exit():
            check_forwarding(operation)
        case _:
            pass


def foreign(operation: Operation) -> Problem:
    """Return the Problem of an operation directly in a graph that does not belong to the executor."""
    name = operation.op.name or getattr(operation.op, "spelling", "")
    if isinstance(operation.op, UnknownOp) and name.startswith("tf_executor."):
        return Problem(f"tf_executor has no operation {name.removeprefix('tf_executor.')}", operation.position,
                       kind="executor", help="the dialect is closed")
    return wrong(operation, "may not stand directly in a tf_executor.graph, where only operations of tf_executor may",
                 help="put it into a tf_executor.island")


def check_regions(operation: Operation, op: ExecutorOp) -> None:
    if len(operation.regions) != op.regions:
        expected = "one region" if op.regions else "no regions"
        raise wrong(operation, f"has {expected}, found {len(operation.regions)}")


# Operands

def check_operands(operation: Operation, op: ExecutorOp) -> None:
    """Check that data comes first, then control; a token is only allowed as first operand of an operation that takes one."""
    takes_token = isinstance(op, NextIterationSink)
    control: Value | None = None
    for number, value in enumerate(operation.operands):
        if value.type == TOKEN:
            if not (takes_token and number == 0):
                raise wrong(operation, f"takes no token as operand {number}, %{value.name}")
        elif takes_token and number == 0:
            raise wrong(operation, f"takes the token of its Source first, %{value.name} is a {value.type}")
        elif value.type == CONTROL:
            control = value
        elif control is not None:
            raise wrong(operation, f"takes its data before its control: %{value.name} stands after %{control.name}")
        else:
            check_data_operand(operation, op, number, value)
    check_number(operation, op)


def check_data_operand(operation: Operation, op: ExecutorOp, number: int, value: Value) -> None:
    if op.most == 0:
        raise wrong(operation, f"takes {op.takes}, operand {number}, %{value.name}, is a {value.type}")
    if not is_tensor(value.type):
        raise wrong(operation, f"takes tensors, operand {number}, %{value.name}, is a {value.type}")


def check_number(operation: Operation, op: ExecutorOp) -> None:
    """Check that there are as many data operands as the operator takes."""
    found = len(data_operands(operation))
    if isinstance(op, Graph | NextIterationSource) and operation.operands:
        raise wrong(operation, "takes no operands; what a graph reads it captures")
    if isinstance(op, NextIterationSink) and not operation.operands:
        raise wrong(operation, f"takes {op.takes}, found no operands")
    if found < op.least or (op.most is not None and found > op.most):
        counted = f"{found} data operand{'s' * (found != 1)}"
        controls = len(control_operands(operation))
        more = f" and {controls} of control" if controls and found < op.least else ""
        raise wrong(operation, f"takes {op.takes}, found {counted}{more}")


# Results

def expected_results(operation: Operation) -> tuple[str, int] | None:
    """Return the results of an operation besides its control, in words, and their number; None if its region determines
    them."""
    match operation.op:
        case Graph() | Island():
            return None
        case Switch():
            return "three results, the false output, the true output and control", 2
        case SwitchN(num_outs=outputs):
            return f"{outputs + 1} results, num_outs = {outputs} outputs and control", outputs
        case Merge():
            return "three results, a value, its index and control", 2
        case NextIterationSource():
            return "three results, a value, a token and control", 2
        case NextIterationSink():
            return "no results", -1
        case op if isinstance(op, ExecutorOp) and op.most == 0:
            return "control as its only result", 0
        case _:
            return "two results, a value and control", 1


def check_results(operation: Operation) -> None:
    """Check that there are as many results as the operator has, with control last and nowhere else."""
    types = [v.type for v in operation.results]
    is_sink, is_source = isinstance(operation.op, NextIterationSink), isinstance(operation.op, NextIterationSource)
    expected = expected_results(operation)
    if expected is not None and len(types) != expected[1] + 1:
        raise wrong(operation, f"has {expected[0]}, found {len(types)} results")
    if not is_sink and (not types or types[-1] != CONTROL):
        found = f"it is a {types[-1]}" if types else "there are none"
        raise wrong(operation, f"gives control as its last result, {found}")
    for number, type in enumerate(types[:-1]):
        if type == CONTROL:
            raise wrong(operation, f"gives control as its last result only, result {number} is one, too")
        if type == TOKEN and not (is_source and number == 1):
            raise wrong(operation, f"gives no token, result {number} is one")
        if type != TOKEN and not is_tensor(type):
            raise wrong(operation, f"gives tensors, result {number} is a {type}")


# Types

def check_equal(operation: Operation, what: str, found: Type, other: str, expected: Type) -> None:
    if not can_be_equal(found, expected):
        raise wrong(operation, f"needs equal types, {what} is a {found}, but {other} is a {expected}")


def is_scalar_of(type: Type, expected: TensorType) -> bool:
    return isinstance(type, TensorType) and type.element == expected.element and type.shape in (None, ())


def check_switch(operation: Operation) -> None:
    data, predicate = operation.operands[:2]
    if not is_scalar_of(predicate.type, PREDICATE):
        raise wrong(operation, f"takes a tensor<i1> as its predicate, %{predicate.name} is a {predicate.type}",
                    help="the operands are data, predicate")
    for name, value in zip(("the false output", "the true output"), operation.results):
        check_equal(operation, name, value.type, "the data", data.type)


def check_switch_n(operation: Operation, op: SwitchN) -> None:
    data, index = operation.operands[:2]
    if not 0 < op.num_outs <= MOST_OUTPUTS:
        raise wrong(operation, f"needs from 1 to {MOST_OUTPUTS} outputs, num_outs is {op.num_outs}")
    if not is_scalar_of(index.type, INDEX_TYPE):
        raise wrong(operation, f"takes a tensor<i32> as its index, %{index.name} is a {index.type}")
    for number, value in enumerate(operation.results[:-1]):
        check_equal(operation, f"output {number}", value.type, "the data", data.type)


def check_merge(operation: Operation) -> None:
    value, index = operation.results[:2]
    for number, operand in enumerate(data_operands(operation)):
        if is_variant(operand.type) and is_variant(value.type):
            continue  # other subtypes, too: TensorFlow treats them as one type
        check_equal(operation, f"operand {number}, %{operand.name},", operand.type, "its value", value.type)
    if not is_scalar_of(index.type, INDEX_TYPE):
        raise wrong(operation, f"gives a tensor<i32> as value_index, it is a {index.type}")


def check_source(operation: Operation) -> None:
    if operation.results[1].type != TOKEN:
        raise wrong(operation, f"gives a token as its second result, it is a {operation.results[1].type}")


def check_loop_condition(operation: Operation) -> None:
    for what, value in (("takes", operation.operands[0]), ("gives", operation.results[0])):
        if not (isinstance(value.type, TensorType) and value.type.element == I1):
            raise wrong(operation, f"{what} a tensor of i1, %{value.name} is a {value.type}")
    check_forwarding(operation)


def check_forwarding(operation: Operation) -> None:
    """Check that an operation forwards one value without changing its type."""
    check_equal(operation, "its result", operation.results[0].type, "its operand", operation.operands[0].type)


# Islands

def check_yields(operation: Operation) -> None:
    """Check that an island yields only data; its control result is implicit."""
    body = operation.regions[0]
    for value in body.yields:
        if value.type in (CONTROL, TOKEN):
            raise Problem(f"tf_executor.yield gives back data only, %{value.name} is a {value.type}",
                          body.terminator_position or operation.position, kind="executor")


def check_island(operation: Operation) -> None:
    """Check that an island yields its results, and captures only data."""
    body, results = operation.regions[0], data_results(operation)
    place = body.terminator_position or operation.position
    if len(body.yields) != len(results):
        raise Problem(f"tf_executor.yield gives back {len(body.yields)} values, but the tf_executor.island has "
                      f"{len(results)} results besides control", place, kind="executor")
    for number, (given, value) in enumerate(zip(body.yields, results)):
        if given.type != value.type:
            raise Problem(f"tf_executor.yield gives back a {given.type} as value {number}, but that result of the "
                          f"tf_executor.island is a {value.type}", place, kind="executor")
    if body.arguments:
        raise wrong(operation, "has no arguments, it captures what it reads", body.position)
    check_body(operation)


def check_body(operation: Operation) -> None:
    captured = {v for v in captures(operation) if v.type in (CONTROL, TOKEN)}
    for inner in operation.regions[0].operations:
        name = inner.op.name or getattr(inner.op, "spelling", "")
        if name.startswith("tf_executor.") and not isinstance(inner.op, Graph):
            raise wrong(inner, "must stand directly in a tf_executor.graph, it is in tf_executor.island")
        for value in (*inner.operands, *captures(inner)) if captured else ():
            if value in captured:
                kind = "control" if value.type == CONTROL else "a token"
                raise Problem(f"{name} uses {kind}, %{value.name}, as data inside a tf_executor.island", inner.position,
                              kind="executor", help="control operands of an island stand in its parentheses")
