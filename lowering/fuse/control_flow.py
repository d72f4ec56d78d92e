"""Regions in fusion: `cond_if` becomes a branch of the step table, `while_loop` a loop, in the same arena.

Values that a region uses from outside are stored before it, results have one buffer that both branches write, and a loop's
values live in buffers that its body overwrites once all new values are known.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..elements.tensor import stored
from ..graph.graph import Block, Operation, Value, captures
from .kernel import Branch, Loop, Step

if TYPE_CHECKING:
    from .fuse import Fuser


def lower(fuser: Fuser, operation: Operation) -> None:
    store_captures(fuser, operation)
    match operation.op.name:
        case "tosa.cond_if":
            conditional(fuser, operation)
        case "tosa.while_loop":
            loop(fuser, operation)
        case name:
            raise Problem(f"{name} has regions and is not known", operation.position, kind="unsupported")


def store_captures(fuser: Fuser, operation: Operation) -> None:
    """What regions read must not change while they run, nor be computed again and again; and a write in a region must not
    reach a value that looks into the variable, wherever it is used."""
    for value in (*captures(operation), *operation.operands):
        if value.constant is None:
            fuser.materialize(value, operation.position)
    for region in operation.regions:
        for inner in region.walk():
            if inner.op.variable_effect == "write":
                fuser.variables.protect(fuser.variables.lookup(inner, inner.operands[0].tensor))


def conditional(fuser: Fuser, operation: Operation) -> None:
    condition = fuser.materialize(operation.operands[0], operation.position)
    results = [fuser.results.get(v) or fuser.buffer(v) for v in operation.results]
    if condition.data is None:
        either(fuser, operation, condition, results)
    else:  # known when compiling
        chosen = operation.regions[0 if condition.data.reshape(-1)[0] else 1]
        fuser.scopes[-1].steps += run(fuser, chosen, operation.operands[1:], results)
    for value, buffer in zip(operation.results, results):
        fuser.place(value, buffer)


def either(fuser: Fuser, operation: Operation, condition: Buffer, results: Sequence[Buffer]) -> None:
    """Both regions, and the step that runs one of them."""
    known = set(fuser.variables.written)
    parts: list[tuple[Step, ...]] = []
    after: list[set[Buffer]] = []
    for region in operation.regions:
        fuser.variables.written = set(known)
        parts.append(run(fuser, region, operation.operands[1:], results))
        after.append(fuser.variables.written)
    fuser.variables.written = after[0] & after[1]
    fuser.step(Branch(condition, parts[0], parts[1]))


def run(fuser: Fuser, region: Block, operands: Sequence[Value], results: Sequence[Buffer]) -> tuple[Step, ...]:
    """The steps of a branch; its yields end in `results`."""
    from .fuse import Scope
    fuser.scopes.append(Scope())
    for argument, operand in zip(region.arguments, operands):
        fuser.tensors[argument] = fuser.tensor(operand)
        fuser.homes[argument] = fuser.homes[operand]
        fuser.reads[argument] = fuser.reads[operand]
    fuser.block(region)
    for value, out in zip(region.yields, results):
        fuser.emit(out, fuser.tensor(value), fuser.origins.get(value, "copy"), region.terminator_position)
    fuser.used(region.yields)
    return tuple(fuser.scopes.pop().steps)


def loop(fuser: Fuser, operation: Operation) -> None:
    test, body = operation.regions
    carried = [fuser.buffer(v) for v in operation.results]
    for value, buffer in zip(operation.operands, carried):
        fuser.emit(buffer, fuser.tensor(value), "copy", operation.position)
    known = set(fuser.variables.written)
    condition = fuser.buffer(test.yields[0], name="condition")
    arguments(fuser, test, carried)
    test_steps = run(fuser, test, (), [condition])
    after_test = set(fuser.variables.written)
    arguments(fuser, body, carried)
    body_steps = advance(fuser, body, carried)
    fuser.variables.written = known | after_test
    fuser.step(Loop(test_steps, condition, body_steps))
    for value, buffer in zip(operation.results, carried):
        fuser.place(value, buffer)
        if value in fuser.results:
            fuser.emit(fuser.results[value], fuser.tensors[value], "copy", operation.position)
            fuser.place(value, fuser.results[value])


def arguments(fuser: Fuser, block: Block, carried: Sequence[Buffer]) -> None:
    for argument, buffer in zip(block.arguments, carried):
        fuser.place(argument, buffer)


def advance(fuser: Fuser, body: Block, carried: Sequence[Buffer]) -> tuple[Step, ...]:
    """One iteration: all new values first, then the carried buffers take them."""
    from .fuse import Scope
    fuser.scopes.append(Scope())
    fuser.block(body)
    changed = [(value, buffer) for value, argument, buffer in zip(body.yields, body.arguments, carried)
               if value is not argument]
    moves: list[tuple[Buffer, Buffer, Value]] = []
    for value, buffer in changed:
        tensor = fuser.tensor(value)
        home = fuser.homes.get(value)
        if home is None or home in carried:
            home = fuser.buffer(value, name=f"{buffer.name}_next")
            fuser.emit(home, tensor, fuser.origins.get(value, "copy"), body.terminator_position)
        moves.append((home, buffer, value))
    for home, buffer, value in moves:
        fuser.emit(buffer, stored(value.tensor, home), "copy", body.terminator_position)
    fuser.used(body.yields)
    return tuple(fuser.scopes.pop().steps)
