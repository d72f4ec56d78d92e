"""Inlining: the values that become a part of their consumer's expression instead of being stored. Layout operators are always
inlined, arithmetic is if no element is computed twice.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..elements.affine import Affine
from ..elements.expression import Apply, Buffer, Cast, Expr, Guard, Reduce
from ..elements.tensor import NotAffine, Tensor, stored
from ..elements.traverse import free_axes, loads, nodes
from ..graph.graph import Block, Operation, Value
from .values import axes_of, static

if TYPE_CHECKING:
    from .fuse import Fuser

WORK = Apply, Cast, Reduce
"""Expressions that compute something."""
MOST_BETWEEN = 8
"""Maximum number of operations between a value and the operation that joins everything computed from the value."""
MOST_LEVELS = 32
"""Number of operators in a chain without a store, at which a value is stored. Models have up to 17, and each level takes up to
6 frames of Python's stack while an expression is made."""
MOST_NODES = 1024
"""Maximum nodes of an expression that may become a part of others; a value with more is stored. Models have up to 221; beyond
that, code grows and runs no faster."""
MOST_OF_OPERANDS = 2 * MOST_NODES
"""Maximum nodes of all unstored operands of one operator together."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of an unstored value's expression: the operators on its longest path, and its nodes."""
    levels: int = 0
    nodes: int = 1


class Inlining:
    """The inlining decisions for one function."""

    def __init__(self, fuser: Fuser) -> None:
        self.fuser = fuser
        self.places = places_of(fuser.function.body)
        self.extents: dict[Value, Extent] = {}

    def is_large(self, value: Value, expression: Expr) -> bool:
        """True if the expression of a value is too deep or too large to become a part of others. Record its extent."""
        below = (self.extents[v].levels for v in self.fuser.unstored_operands(value) if v in self.extents)
        extent = self.extents[value] = Extent(1 + max(below, default=0), len(nodes(expression)))
        return extent.levels >= MOST_LEVELS or extent.nodes > MOST_NODES

    def too_many(self, operation: Operation) -> list[Value]:
        """Return the largest unstored operands, to be stored before the operator, if all operands together are too large."""
        extents = {v: self.extents[v].nodes for v in operation.operands if v in self.extents and self.fuser.is_unstored(v)}
        left, stored = sorted(extents, key=extents.__getitem__), list[Value]()
        total = sum(extents.values())
        while total > MOST_OF_OPERANDS:
            stored.append(left.pop())
            total -= extents[stored[-1]]
        return stored

    def may_inline(self, value: Value, expression: Expr) -> bool:
        """True if a value may be inlined. Layout costs nothing and always may; arithmetic only if no element is computed twice;
        neither beyond the maximum size of an expression."""
        if self.is_large(value, expression):
            return False
        if not isinstance(expression, WORK) and not any(isinstance(e, WORK) for e in nodes(expression)):
            return True
        if value in self.fuser.definitions and self.fuser.definitions[value].op.stands_alone:
            return False
        users = list(dict.fromkeys(self.fuser.uses[value]))
        if len(users) > 1:
            return self.meets(value, users)
        user = users[0]
        if user is None or user.op.variable_effect == "write":
            return len(self.fuser.uses[value]) == 1
        return is_plain(user) and self.reads_once([user], value)

    def meets(self, value: Value, users: Sequence[Operation | None]) -> bool:
        """True if the last user of a value, or an operation soon after it, joins everything that is computed from the value,
        element by element: then the value is part of one kernel, which computes it once."""
        operations = [u for u in users if u is not None]
        block = self.places[self.fuser.definitions[value]][0] if value in self.fuser.definitions else None
        if len(operations) < len(users) or any(self.places[u][0] != block for u in operations):
            return False
        last = max(operations, key=lambda u: self.places[u][1])
        ways = next((found for end in self.chain(last) if None not in (found := [self.way(u, end) for u in operations])), [])
        between = {o for way in ways if way for o in way}
        return bool(between) and self.reads_once(sorted(between, key=lambda o: self.places[o][1]), value)

    def way(self, user: Operation, last: Operation) -> list[Operation] | None:
        """Return the operations from `user` to `last`, each the only reader of the one before; None if others read one."""
        found = self.chain(user)
        if last not in found:
            return None
        found = found[:found.index(last) + 1]
        return found if all(is_plain(o) for o in found) else None

    def chain(self, first: Operation) -> list[Operation]:
        """Return an operation and its successors, each the only reader of the one before."""
        found = [first]
        while len(found) <= MOST_BETWEEN:
            following = self.fuser.uses.get(found[-1].results[0], []) if len(found[-1].results) == 1 else []
            if len(following) != 1 or following[0] is None:
                break
            found.append(following[0])
        return found

    def reads_once(self, users: Sequence[Operation], value: Value) -> bool:
        """True if `users`, each part of the next, read each element of `value` at most once: at one index, in an iteration
        space no larger than the value."""
        probe = Buffer("probe", static(value).element.storage, static(value).dims)
        tensors = {value: stored(static(value), probe)}
        try:
            for user in users:
                operands = [tensors.get(v) or self.as_if_stored(v) for v in user.operands]
                result = user.results[0]
                element, = user.op.result_elements([static(result)], *operands)
                tensors[result] = Tensor(static(result), element)
            axes = axes_of(static(result))
            e = element(*map(Affine.of, axes))
        except (NotAffine, Problem):
            return False
        space = set(axes) | free_axes(e)
        return (len({load.index for load in loads(e) if load.buffer is probe}) == 1
                and math.prod(a.extent for a in space) <= static(value).size)

    def narrowest(self, value: Value) -> Value:
        """Return the value to store if an unstored value's reductions and guards may not stay in its reader: the value itself,
        or the smallest value after the reductions and guards from which it is computed, element by element."""
        found = value
        while (following := self.sole_source(value)) is not None:
            value = following
            if static(value).nbytes < static(found).nbytes:
                found = value
        return found

    def sole_source(self, value: Value) -> Value | None:
        """Return the only unstored operand of a value, if its operator is arithmetic on single elements; else None."""
        operation = self.fuser.definitions.get(value)
        if operation is None or not is_plain(operation) or len(set(self.fuser.uses[value])) > 1:
            return None
        inlined = {v for v in operation.operands if v not in self.fuser.homes and v in self.fuser.definitions}
        if len(inlined) != 1 or static(*inlined).dims != static(value).dims:
            return None
        element, = operation.op.result_elements([static(value)], *map(self.as_if_stored, operation.operands))
        e = element(*map(Affine.of, axes_of(static(value))))
        return None if any(isinstance(n, (Reduce, Guard)) for n in nodes(e)) else inlined.pop()

    def as_if_stored(self, value: Value) -> Tensor:
        if value.constant is not None or self.fuser.is_folded(value):
            return self.fuser.tensor(value)
        return stored(static(value), Buffer(value.name, static(value).element.storage, static(value).dims))


def is_plain(operation: Operation) -> bool:
    """True if an operation has one result and no other effect."""
    return not operation.regions and not operation.op.variable_effect and len(operation.results) == 1


def places_of(block: Block) -> dict[Operation, tuple[int, int]]:
    """Map each operation to the number of its block, and its number in that block."""
    found: dict[Operation, tuple[int, int]] = {}
    blocks = [block]
    for number, inner in enumerate(blocks):
        found.update((o, (number, i)) for i, o in enumerate(inner.operations))
        blocks += [r for o in inner.operations for r in o.regions]
    return found
