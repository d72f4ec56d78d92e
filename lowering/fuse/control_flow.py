"""Regions in fusion: `cond_if` becomes a branch of the step table, `while_loop` a loop, in the same arena.

Values that a region captures are stored before the region. Both branches write a result to the same buffer. The carried values
of a loop are in buffers that the body overwrites once all new values are known, or in place if nothing needs the old value.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..elements.affine import Affine
from ..elements.expression import Buffer
from ..elements.tensor import stored
from ..elements.traverse import loads
from ..graph.graph import Block, Operation, Value, captures
from ..kernels.kernel import Branch, Loop, Step
from .values import axes_of

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
    """Store the values that regions capture, so that the values neither change while a region runs nor are computed repeatedly.
    Also store each value that is a view of a variable that a region writes, wherever the value is used."""
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
    """Lower both regions, and append the step that runs one of them."""
    known = set(fuser.variables.written)
    branches: list[tuple[Step, ...]] = []
    after: list[set[Buffer]] = []
    for region in operation.regions:
        fuser.variables.written = set(known)
        branches.append(run(fuser, region, operation.operands[1:], results))
        after.append(fuser.variables.written)
    fuser.variables.written = after[0] & after[1]
    fuser.step(Branch(condition, branches[0], branches[1]))


def run(fuser: Fuser, region: Block, operands: Sequence[Value], results: Sequence[Buffer]) -> tuple[Step, ...]:
    """Return the steps of a region, which store its yields in `results`."""
    from .fuse import StepScope
    fuser.scopes.append(StepScope())
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
    """Return the steps of one iteration: compute the new values, then copy them to the carried buffers. A new value that can
    overwrite the old one in place (`in_place`) does so, in an order that keeps what other new values read until they have read
    it."""
    from .fuse import StepScope
    fuser.scopes.append(StepScope())
    fuser.block(body)
    changed = {buffer: value for value, argument, buffer in zip(body.yields, body.arguments, carried) if value is not argument}
    reads = {buffer: found for buffer, value in changed.items()
             if (found := in_place(fuser, value, buffer, carried)) is not None}
    order = before_overwritten(reads)
    homes = {buffer: home_of(fuser, value, buffer, carried, body) for buffer, value in changed.items() if buffer not in order}
    for buffer in order:
        value = changed[buffer]
        fuser.emit(buffer, fuser.tensor(value), fuser.origins.get(value, "copy"), body.terminator_position)
    for buffer, home in homes.items():
        fuser.emit(buffer, stored(changed[buffer].tensor, home), "copy", body.terminator_position)
    fuser.used(body.yields)
    return tuple(fuser.scopes.pop().steps)


def home_of(fuser: Fuser, value: Value, buffer: Buffer, carried: Sequence[Buffer], body: Block) -> Buffer:
    """Return the buffer of a new value before the copy to the carried buffer."""
    tensor, home = fuser.tensor(value), fuser.homes.get(value)
    if home is None or home in carried:
        home = fuser.buffer(value, name=f"{buffer.name}_next")
        fuser.emit(home, tensor, fuser.origins.get(value, "copy"), body.terminator_position)
    return home


def in_place(fuser: Fuser, value: Value, buffer: Buffer, carried: Sequence[Buffer]) -> set[Buffer] | None:
    """Return the other carried buffers that a new value reads, if each of its elements reads only the element of the old value
    at the same offset, as when one row of many is set; None if the value must be computed separately, or is stored already."""
    tensor = fuser.tensor(value)
    if fuser.homes.get(value) is not None:
        return None
    axes = tuple(map(Affine.of, axes_of(tensor.type)))
    found = loads(tensor.element(*axes))
    if any(x.buffer is buffer and place_of(buffer, x.index) != place_of(buffer, axes) for x in found):
        return None
    return {x.buffer for x in found} & set(carried) - {buffer}


def before_overwritten(reads: Mapping[Buffer, set[Buffer]]) -> list[Buffer]:
    """Return the buffers in an order in which each is overwritten after its last read for another buffer. Leave out buffers
    that need each other."""
    left, order = dict(reads), []
    while left:
        free = next((b for b in left if not any(b in needed for c, needed in left.items() if c is not b)), None)
        if free is not None:
            order.append(free)
        del left[next(iter(left)) if free is None else free]
    return order


def place_of(buffer: Buffer, index: Sequence[Affine]) -> Affine:
    """Return the offset of an element from the first one, in elements."""
    if len(index) == 1:
        return index[0]
    return Affine.sum([(t, c * stride) for i, stride in zip(index, buffer.strides) for t, c in i.terms],
                      sum(i.const * stride for i, stride in zip(index, buffer.strides)))
