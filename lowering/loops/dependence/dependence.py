"""Dependence queries about a function: which loops have independent iterations, which buffers carry values from iteration to
iteration, and which buffers a statement loads and stores. The division of loops among threads uses them.
"""
from __future__ import annotations

from collections.abc import Set

from ...elements.expression import Buffer
from ..ir import For, Function, GatherFrom, If, LoadFrom, LoadTile, Stmt, StoreTile, StoreTo
from .accesses import Accesses
from .independence import are_independent
from .loop_carried import Iteration

Buffers = Set[Buffer]
NONE: Buffers = frozenset()


class Dependence:
    """The dependence queries for one function."""

    def __init__(self, function: Function) -> None:
        self.accesses = Accesses.of(function)

    def are_independent(self, loop: For, buffers: Buffers) -> bool:
        """True if no iteration of a loop touches an element of these buffers that another one touches."""
        return are_independent(self.accesses, loop, buffers)

    def is_carried(self, loop: For, buffers: Buffers) -> bool:
        """True if an iteration may load from one of these buffers a value stored in another iteration, or before the loop."""
        inside = self.accesses.inside(loop.body)
        both = frozenset(buffers) & inside.loaded & inside.stored
        if not both or self.accesses.iterations[loop.index] == 1:
            return False
        iteration = Iteration(self.accesses, loop, both)
        return any(iteration.is_carried(buffer) and not self.are_independent(loop, {buffer}) for buffer in both)

    def touched(self, stmt: Stmt) -> tuple[Buffers, Buffers]:
        """Return the buffers that a statement loads, and those that it stores."""
        match stmt:
            case For(body=body) | If(body=body):
                inside = self.accesses.inside(body)
                return inside.loaded, inside.stored
            case LoadFrom(address=address) | LoadTile(address=address):
                return {address.buffer}, NONE
            case GatherFrom(buffer=buffer):
                return {buffer}, NONE
            case StoreTo(address=address) | StoreTile(address=address):
                return NONE, {address.buffer}
        return NONE, NONE
