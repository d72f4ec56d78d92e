"""Branches and loops of TensorFlow: functions or regions become regions of COND_IF and WHILE_LOOP."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...dialects.control_flow import branch, choose, condition_of, loop
from ...dialects.data import Datum, described
from ...graph.foreign import callees
from ...graph.graph import Block, Operation, Value
from .special import Scope, check_number, special

if TYPE_CHECKING:
    from .translate import Translation


# ---- operations ------------------------------------------------------------------------------------------------------
def function_names(operation: Operation, *names: str) -> list[str]:
    found = callees(operation)
    return [f for name in names for f in found.get(name, ())]


@special("tf.If", "tf.StatelessIf")
def if_(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    """Lower If, with a function as condition (the dialect's design document) or with the first operand."""
    found = callees(operation)
    if "cond" in found:
        condition, rest = only(t.call(found["cond"][0], operands)), operands
        names = function_names(operation, "true_branch", "false_branch", "then_branch", "else_branch")
    else:
        condition, rest = operands[0] if operands else None, operands[1:]
        names = function_names(operation, "then_branch", "else_branch")
    if len(names) != 2:
        raise Problem(f"it names {len(names)} branches, not two", operation.position, kind="attribute")
    return branch(t.emitter, condition_of(t.emitter, condition), lambda: t.call(names[0], rest), lambda: t.call(names[1], rest))


@special("tf.Case", "tf.StatelessCase", operands=1)
def case(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    index, *rest = operands
    names = function_names(operation, "branches")
    if not names:
        raise Problem("it names no branches", operation.position, kind="attribute")
    return choose(t.emitter, tensor_of(index), [functools.partial(t.call, name, rest) for name in names])


@special("tf.While", "tf.StatelessWhile")
def while_(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    names = function_names(operation, "cond") + function_names(operation, "body")
    if len(names) != 2:
        raise Problem(f"it names {len(names)} functions, not a condition and a body", operation.position, kind="attribute")
    return loop(t.emitter, operands, lambda state: only(t.call(names[0], state)), lambda state: t.call(names[1], state))


@special("tf.IfRegion", operands=1, regions=2)
def if_region(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    then, otherwise = (functools.partial(t.block, region, dict(scope)) for region in operation.regions)
    return branch(t.emitter, condition_of(t.emitter, operands[0]), then, otherwise)


@special("tf.CaseRegion", operands=1, regions=1)
def case_region(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    branches = [functools.partial(t.block, region, dict(scope)) for region in operation.regions]
    return choose(t.emitter, tensor_of(operands[0]), branches)


@special("tf.WhileRegion", regions=2)
def while_region(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    test, body = operation.regions

    def inside(region: Block, state: Sequence[Datum]) -> Sequence[Datum]:
        check_number(len(region.arguments), len(state), "a region")
        return t.block(region, {**scope, **dict(zip(region.arguments, state, strict=True))})
    return loop(t.emitter, operands, lambda state: inside(test, state)[0], lambda state: inside(body, state))


def only(results: Sequence[Datum]) -> Datum:
    """Return the one value that a condition gives."""
    if len(results) != 1:
        raise Problem(f"a condition gives {len(results)} values, not one", kind="type")
    return results[0]


def tensor_of(datum: Datum) -> Value:
    if not isinstance(datum, Value):
        raise Problem(f"an index is {described(datum)}, not a tensor", kind="type")
    return datum
