"""Other buffers for some of a function's."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..elements.expression import Buffer
from .ir import (
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    LoadFrom,
    LoadTile,
    Prefetch,
    Shuffle,
    Stmt,
    StoreTile,
    StoreTo,
)


def substituted(function: Function, buffers: Mapping[Buffer, Buffer], name: str = "") -> Function:
    """The function with `buffers[b]` for b, perhaps under another name; the new buffers have the same elements."""
    if not buffers:
        return function

    def memory(some: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        return tuple(buffers.get(b, b) for b in some)

    def place(a: Address) -> Address:
        return Address(buffers[a.buffer], a.base, a.offset) if a.buffer in buffers else a

    def block(statements: Block) -> Block:
        return [moved(stmt) for stmt in statements]

    def moved(stmt: Stmt) -> Stmt:
        match stmt:
            case Let() | Shuffle():  # most are of these
                return stmt
            case LoadFrom(result, address, active, mask):
                return LoadFrom(result, place(address), active, mask)
            case StoreTo(address, value, active, streaming):
                return StoreTo(place(address), value, active, streaming)
            case Prefetch() | LoadTile() | StoreTile():
                return dataclasses.replace(stmt, address=place(stmt.address))
            case GatherFrom(buffer=buffer):
                return dataclasses.replace(stmt, buffer=buffers.get(buffer, buffer))
            case For() | If():
                return dataclasses.replace(stmt, body=block(stmt.body))
            case _:
                return stmt

    return dataclasses.replace(function, name=name or function.name, params=memory(function.params),
                               scratch=memory(function.scratch), body=block(function.body))
