"""Branches and loops while a graph becomes TOSA: the results of a front end's branches become regions of COND_IF and
WHILE_LOOP.

A condition that is known at compile time selects its branch. A loop does not carry values that never change: the body is
translated as if nothing changed, and again with the values that proved to change, until a fixed point. So constants stay
constants inside, and handles of variables are not carried.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...runtime.errors import Problem
from ..graph.graph import Block, BlockBuilder, Value
from .data import Datum, ListOfTensors, TensorSequence, Text, described, leaves, rebuilt
from .emitter import Emitter
from .tosa.control_flow import CondIf, WhileLoop

Branch = Callable[[], Sequence[Datum]]
"""A function that emits a branch and returns its results; None for a result that has no value there, and may be anything."""


# ---- branches --------------------------------------------------------------------------------------------------------
def branch(e: Emitter, condition: Value, then: Branch, otherwise: Branch) -> list[Datum]:
    """Return the results of one of two branches; `condition` is one bool of rank 0."""
    if condition.constant is not None:
        return list((then if condition.constant.item() else otherwise)())
    with e.region("then") as first:
        left = list(then())
    with e.region("else") as second:
        right = list(otherwise())
    if len(left) != len(right):
        raise Problem(f"the branches give {len(left)} and {len(right)} results", kind="type")
    pairs = [(with_zeros(e, a, b), with_zeros(e, b, a)) for a, b in zip(left, right)]
    depends = [differ(n, a, b) for n, (a, b) in enumerate(pairs)]
    blocks = [block_of(builder, [pair[side] for pair, own in zip(pairs, depends) if own])
              for side, builder in enumerate((first, second))]
    found = iter(e.add(CondIf(), condition, regions=blocks))
    return [rebuilt(a, tuple(next(found) for _ in leaves(a))) if own else a for (a, _), own in zip(pairs, depends)]


def block_of(builder: BlockBuilder, data: Sequence[Datum]) -> Block:
    return builder.finish(*(v for datum in data for v in leaves(datum)))


def with_zeros(e: Emitter, datum: Datum, other: Datum) -> Datum:
    """Return a datum without a value as zeros of the type that it has in the other branch; without a tensor type, as the other
    datum."""
    match datum, other:
        case None, Value():
            return e.zeros(other.tensor)
        case None, ListOfTensors(items=Value()):
            return replace(other, items=e.zeros(other.type))
        case None, _:
            return other
        case ListOfTensors(items=None), ListOfTensors(items=Value()):
            typed = replace(datum, element=datum.element or other.element)
            return replace(typed, items=e.zeros(typed.type))
        case _:
            return datum


def differ(number: int, a: Datum, b: Datum) -> bool:
    """True if a result depends on the branch; raise a Problem if both cannot be one result."""
    match a, b:
        case Value(), Value():
            same_types(number, a.type, b.type)
            return a is not b
        case ListOfTensors(items=Value() as x), ListOfTensors(items=Value() as y):
            same_types(number, x.type, y.type)
            return x is not y
        case TensorSequence(items=x), TensorSequence(items=y) if len(x) == len(y):
            for one, other in zip(x, y):
                same_types(number, one.type, other.type)
            return x != y
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
"""Maximum number of branches that are tested one after the other: nested as deep as level 8K allows. More branches are halved
again and again."""


def choose(e: Emitter, index: Value, branches: Sequence[Branch]) -> list[Datum]:
    """Return the results of one of several branches, the last one for an index out of range."""
    if index.constant is not None:
        chosen = int(index.constant.item())
        return list(branches[chosen if 0 <= chosen < len(branches) else -1]())
    if len(branches) <= MAX_TESTED_BRANCHES:
        return one_of(e, index, branches)
    dtype = index.tensor.element.dtype
    below = e("greater", e.constant(np.array(0, dtype)), index)
    return halved(e, e.select(below, e.constant(np.array(len(branches) - 1, dtype)), index), branches)


def one_of(e: Emitter, index: Value, branches: Sequence[Branch], first: int = 0) -> list[Datum]:
    """Return the results of one of few branches, from branch `first` on."""
    if len(branches) - first == 1:
        return list(branches[first]())
    here = e("equal", index, e.constant(np.array(first, index.tensor.element.dtype)))
    return branch(e, here, branches[first], lambda: one_of(e, index, branches, first + 1))


def halved(e: Emitter, index: Value, branches: Sequence[Branch], first: int = 0) -> list[Datum]:
    """Return the results of one of many branches, the first of which has the number `first`; the last one for an index above
    the range."""
    if len(branches) == 1:
        return list(branches[0]())
    half = len(branches) // 2
    below = e("greater", e.constant(np.array(first + half, index.tensor.element.dtype)), index)
    return branch(e, below, lambda: halved(e, index, branches[:half], first),
                  lambda: halved(e, index, branches[half:], first + half))


# ---- loops -----------------------------------------------------------------------------------------------------------
State = list[Datum]
"""The data that a loop carries; None for data without a value before the first iteration."""
Test = Callable[[State], Datum]
Body = Callable[[State], Sequence[Datum]]


def loop(e: Emitter, state: Sequence[Datum], test: Test, body: Body) -> State:
    """Return the state after `state = body(state)` as long as `test(state)` is true."""
    first = list(state)
    changing: set[int] = set()
    recorded = len(e.records or ())
    while True:
        if e.records is not None:
            del e.records[recorded:]  # records of a body that proved not to be the loop's
        with e.region("do") as inside:
            begin = arguments(inside, first, changing)
            end = list(body(list(begin)))
        if len(end) != len(first):
            raise Problem(f"a loop carries {len(first)} values, its body gives {len(end)}", kind="type")
        found = changing | {n for n, (a, b) in enumerate(zip(begin, end)) if not is_same(a, b)}
        typed = [with_zeros(e, a, b) for a, b in zip(first, end)]
        if found == changing and all(a is b for a, b in zip(first, typed)):
            break
        changing, first = found, typed
    for n in sorted(changing):
        check_carried(n, first[n], end[n])
    with e.region("while") as above:
        condition = condition_of(e, test(arguments(above, first, changing)))
    carried = sorted(changing)
    blocks = above.finish(condition), block_of(inside, [end[n] for n in carried])
    values = [v for n in carried for v in leaves(first[n])]
    results = iter(e.add(WhileLoop(), *values, regions=blocks))
    return [rebuilt(x, tuple(next(results) for _ in leaves(x))) if n in changing else x for n, x in enumerate(first)]


def arguments(builder: BlockBuilder, state: State, changing: set[int]) -> State:
    """Return the state inside a region: changing data are its arguments, the rest comes from outside."""
    return [rebuilt(x, tuple(builder.argument(v.type) for v in leaves(x))) if n in changing else x for n, x in enumerate(state)]


def condition_of(e: Emitter, datum: Datum) -> Value:
    if not isinstance(datum, Value):
        raise Problem(f"a condition is {described(datum)}, not a tensor", kind="type")
    return e.is_true(datum)


def is_same(a: Datum, b: Datum) -> bool:
    """True if a loop leaves a datum unchanged."""
    if isinstance(a, ListOfTensors) and isinstance(b, ListOfTensors):
        return a.items is b.items and a.count == b.count
    if isinstance(a, TensorSequence) and isinstance(b, TensorSequence):
        return a.items == b.items
    return a is b if isinstance(a, Value) else a == b


def check_carried(number: int, before: Datum, after: Datum) -> None:
    """Check that a value that a loop of TOSA carries keeps its type."""
    given, found = [v.type for v in leaves(before)], [v.type for v in leaves(after)]
    if isinstance(before, ListOfTensors) and isinstance(after, ListOfTensors) and before.count != after.count:
        raise Problem(f"value {number} that a loop carries is {described(before)} at first, one of "
                      f"{after.count} after an iteration",
                      kind="unsupported", help="a list that a loop carries must keep its length: reserve all of it before")
    if given != found or not given:
        shown = [", ".join(map(str, types)) or described(x) for types, x in ((given, before), (found, after))]
        raise Problem(f"value {number} that a loop carries is {shown[0]} at first and {shown[1]} after an iteration",
                      kind="unsupported", help="what a loop carries must keep its type, and be a tensor")
