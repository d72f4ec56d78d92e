"""Branches and loops: functions or regions of TensorFlow become regions of COND_IF and WHILE_LOOP.

A condition that is known when compiling chooses then. What a loop carries and never changes is not carried: it is found by
translating the body as if nothing changed, and again with what turned out to change, until that stays. So constants stay
constants inside, and handles of variables need no place in the loop.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ....runtime.errors import Problem
from ...dialects.tf.legalizations.data import Datum, ListOfTensors, Text, described, leaves, rebuilt
from ...dialects.tosa.control_flow import CondIf, WhileLoop
from ...graph.foreign import callees
from ...graph.graph import Block, BlockBuilder, Operation, Value
from .special import Scope, check_number, special

if TYPE_CHECKING:
    from .translate import Translation

Branch = Callable[[], Sequence[Datum]]
"""What a branch gives; None for what has no meaning there, and may be anything."""


# ---- branches --------------------------------------------------------------------------------------------------------
def branch(t: Translation, condition: Value, then: Branch, otherwise: Branch) -> list[Datum]:
    """What one of two branches gives; `condition` is one bool of rank 0."""
    if condition.constant is not None:
        return list((then if condition.constant.item() else otherwise)())
    with t.emitter.region("then") as first:
        left = list(then())
    with t.emitter.region("else") as second:
        right = list(otherwise())
    if len(left) != len(right):
        raise Problem(f"the branches give {len(left)} and {len(right)} results", kind="type")
    pairs = [(with_zeros(t, a, b), with_zeros(t, b, a)) for a, b in zip(left, right)]
    depends = [differ(n, a, b) for n, (a, b) in enumerate(pairs)]
    blocks = [block_of(builder, [pair[side] for pair, own in zip(pairs, depends) if own])
              for side, builder in enumerate((first, second))]
    found = iter(t.emitter.add(CondIf(), condition, regions=blocks))
    return [rebuilt(a, tuple(next(found) for _ in leaves(a))) if own else a for (a, _), own in zip(pairs, depends)]


def block_of(builder: BlockBuilder, data: Sequence[Datum]) -> Block:
    return builder.finish(*(v for datum in data for v in leaves(datum)))


def with_zeros(t: Translation, datum: Datum, other: Datum) -> Datum:
    """What has no value yet as zeros of the type that it has elsewhere; what is no tensor as it is there."""
    match datum, other:
        case None, Value():
            return t.emitter.zeros(other.tensor)
        case None, ListOfTensors(items=Value()):
            return replace(other, items=t.emitter.zeros(other.type))
        case None, _:
            return other
        case ListOfTensors(items=None), ListOfTensors(items=Value()):
            typed = replace(datum, element=datum.element or other.element)
            return replace(typed, items=t.emitter.zeros(typed.type))
        case _:
            return datum


def differ(number: int, a: Datum, b: Datum) -> bool:
    """Whether a result depends on the branch; a Problem where both cannot be one result."""
    match a, b:
        case Value(), Value():
            same_types(number, a.type, b.type)
            return a is not b
        case ListOfTensors(items=Value() as x), ListOfTensors(items=Value() as y):
            same_types(number, x.type, y.type)
            return x is not y
        case (Text(), Text()) | (None, None):
            return False
        case _ if a == b:
            return False
        case _:
            raise Problem(f"result {number} is {described(a)} in one branch and {described(b)} in the other",
                          kind="unsupported", help="both branches must give tensors of one type, or the same variable")


def same_types(number: int, a: object, b: object) -> None:
    if a != b:
        raise Problem(f"result {number} is {a} in one branch and {b} in the other", kind="unsupported",
                      help="the branches must give tensors of one shape to be compiled")


MAX_TESTED_BRANCHES = 7
"""Branches that are tested one after the other: that is as deep as level 8K allows. More are halved again and again."""


def choose(t: Translation, index: Value, branches: Sequence[Branch]) -> list[Datum]:
    """One of several branches, the last one for an index outside of them."""
    if index.constant is not None:
        chosen = int(index.constant.item())
        return list(branches[chosen if 0 <= chosen < len(branches) else -1]())
    if len(branches) <= MAX_TESTED_BRANCHES:
        return one_of(t, index, branches)
    dtype = index.tensor.element.dtype
    below = t.emitter("greater", t.emitter.constant(np.array(0, dtype)), index)
    return halved(t, t.emitter.select(below, t.emitter.constant(np.array(len(branches) - 1, dtype)), index), branches)


def one_of(t: Translation, index: Value, branches: Sequence[Branch], first: int = 0) -> list[Datum]:
    """One of few branches, from the first on."""
    if len(branches) - first == 1:
        return list(branches[first]())
    here = t.emitter("equal", index, t.emitter.constant(np.array(first, index.tensor.element.dtype)))
    return branch(t, here, branches[first], lambda: one_of(t, index, branches, first + 1))


def halved(t: Translation, index: Value, branches: Sequence[Branch], first: int = 0) -> list[Datum]:
    """One of many branches, of which the first has the number `first`; the last one for an index behind them."""
    if len(branches) == 1:
        return list(branches[0]())
    half = len(branches) // 2
    below = t.emitter("greater", t.emitter.constant(np.array(first + half, index.tensor.element.dtype)), index)
    return branch(t, below, lambda: halved(t, index, branches[:half], first),
                  lambda: halved(t, index, branches[half:], first + half))


# ---- loops -----------------------------------------------------------------------------------------------------------
State = list[Datum]
"""What a loop carries; None for what has no value before the first iteration has given it one."""
Test = Callable[[State], Datum]
Body = Callable[[State], Sequence[Datum]]


def loop(t: Translation, state: Sequence[Datum], test: Test, body: Body) -> State:
    """The state after `state = body(state)` as long as `test(state)` is true."""
    first = list(state)
    changing: set[int] = set()
    while True:
        with t.emitter.region("do") as inside:
            begin = arguments(inside, first, changing)
            end = list(body(list(begin)))
        if len(end) != len(first):
            raise Problem(f"a loop carries {len(first)} values, its body gives {len(end)}", kind="type")
        found = changing | {n for n, (a, b) in enumerate(zip(begin, end)) if not is_same(a, b)}
        typed = [with_zeros(t, a, b) for a, b in zip(first, end)]
        if found == changing and all(a is b for a, b in zip(first, typed)):
            break
        changing, first = found, typed
    for n in sorted(changing):
        check_carried(n, first[n], end[n])
    with t.emitter.region("while") as above:
        condition = condition_of(t, test(arguments(above, first, changing)))
    carried = sorted(changing)
    blocks = above.finish(condition), block_of(inside, [end[n] for n in carried])
    values = [v for n in carried for v in leaves(first[n])]
    results = iter(t.emitter.add(WhileLoop(), *values, regions=blocks))
    return [rebuilt(x, tuple(next(results) for _ in leaves(x))) if n in changing else x for n, x in enumerate(first)]


def arguments(builder: BlockBuilder, state: State, changing: set[int]) -> State:
    """The state inside a region: what changes are its arguments, the rest comes from outside."""
    return [rebuilt(x, tuple(builder.argument(v.type) for v in leaves(x))) if n in changing else x for n, x in enumerate(state)]


def condition_of(t: Translation, datum: Datum) -> Value:
    if not isinstance(datum, Value):
        raise Problem(f"a condition is {described(datum)}, not a tensor", kind="type")
    return t.emitter.is_true(datum)


def is_same(a: Datum, b: Datum) -> bool:
    """Whether a loop leaves it as it is."""
    if isinstance(a, ListOfTensors) and isinstance(b, ListOfTensors):
        return a.items is b.items and a.count == b.count
    return a is b if isinstance(a, Value) else a == b


def check_carried(number: int, before: Datum, after: Datum) -> None:
    """A loop of TOSA carries values of one type."""
    given, found = [v.type for v in leaves(before)], [v.type for v in leaves(after)]
    if isinstance(before, ListOfTensors) and isinstance(after, ListOfTensors) and before.count != after.count:
        raise Problem(f"value {number} that a loop carries is {described(before)} at first, one of "
                      f"{after.count} after an iteration",
                      kind="unsupported", help="a list that a loop carries must keep its length: reserve all of it before")
    if given != found or not given:
        shown = [", ".join(map(str, types)) or described(x) for types, x in ((given, before), (found, after))]
        raise Problem(f"value {number} that a loop carries is {shown[0]} at first and {shown[1]} after an iteration",
                      kind="unsupported", help="what a loop carries must keep its type, and be a tensor")


# ---- operations ------------------------------------------------------------------------------------------------------
def function_names(operation: Operation, *names: str) -> list[str]:
    found = callees(operation)
    return [f for name in names for f in found.get(name, ())]


@special("tf.If", "tf.StatelessIf")
def if_(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    """With a function as condition (the dialect's design document) or with the first operand."""
    found = callees(operation)
    if "cond" in found:
        condition, rest = only(t.call(found["cond"][0], operands)), operands
        names = function_names(operation, "true_branch", "false_branch", "then_branch", "else_branch")
    else:
        condition, rest = operands[0] if operands else None, operands[1:]
        names = function_names(operation, "then_branch", "else_branch")
    if len(names) != 2:
        raise Problem(f"it names {len(names)} branches, not two", operation.position, kind="attribute")
    return branch(t, condition_of(t, condition), lambda: t.call(names[0], rest), lambda: t.call(names[1], rest))


@special("tf.Case", "tf.StatelessCase", operands=1)
def case(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    index, *rest = operands
    names = function_names(operation, "branches")
    if not names:
        raise Problem("it names no branches", operation.position, kind="attribute")
    return choose(t, tensor_of(index), [functools.partial(t.call, name, rest) for name in names])


@special("tf.While", "tf.StatelessWhile")
def while_(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    names = function_names(operation, "cond") + function_names(operation, "body")
    if len(names) != 2:
        raise Problem(f"it names {len(names)} functions, not a condition and a body", operation.position, kind="attribute")
    return loop(t, operands, lambda state: only(t.call(names[0], state)), lambda state: t.call(names[1], state))


@special("tf.IfRegion", operands=1, regions=2)
def if_region(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    then, otherwise = (functools.partial(t.block, region, dict(scope)) for region in operation.regions)
    return branch(t, condition_of(t, operands[0]), then, otherwise)


@special("tf.CaseRegion", operands=1, regions=1)
def case_region(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    branches = [functools.partial(t.block, region, dict(scope)) for region in operation.regions]
    return choose(t, tensor_of(operands[0]), branches)


@special("tf.WhileRegion", regions=2)
def while_region(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    test, body = operation.regions

    def inside(region: Block, state: Sequence[Datum]) -> Sequence[Datum]:
        check_number(len(region.arguments), len(state), "a region")
        return t.block(region, {**scope, **dict(zip(region.arguments, state, strict=True))})
    return loop(t, operands, lambda state: only(inside(test, state)), lambda state: inside(body, state))


def only(results: Sequence[Datum]) -> Datum:
    """What a condition gives."""
    if len(results) != 1:
        raise Problem(f"a condition gives {len(results)} values, not one", kind="type")
    return results[0]


def tensor_of(datum: Datum) -> Value:
    if not isinstance(datum, Value):
        raise Problem(f"an index is {described(datum)}, not a tensor", kind="type")
    return datum
