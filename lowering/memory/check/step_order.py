"""The use in time of bytes that two buffers of one step share: part of the verifier's replay (`replay`).

A step must be done with each shared byte in the one buffer before it uses the byte in the other. A step needs an operand until
its last access, a result from its first access on, and scratch between both. A byte that no access touches is needed all the
time.
"""
from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...elements.expression import Buffer
from ...loops.dependence.access_order import NEVER, Touches, touches
from ...loops.ir import (
    Function,
    GatherFrom,
    LoadFrom,
    LoadTile,
    Stmt,
    StoreTile,
    StoreTo,
    buffers_read,
    buffers_written,
    walk,
)

Integers = npt.NDArray[np.int64]
Part = Literal["operand", "result", "scratch", "both"]
EVER = -1


def part_of(function: Function, buffer: Buffer) -> Part:
    """Return the role of a buffer in a function."""
    if buffer in function.scratch:
        return "scratch"
    if buffer not in buffers_written(function):
        return "operand"
    return "both" if buffer in buffers_read(function) else "result"


def are_apart(function: Function, one: Buffer, other: Buffer, distance: int, is_whole: bool) -> bool:
    """True if no byte is needed in both buffers at the same time while the function runs. `other` begins `distance` bytes
    after `one`; single accesses are examined only for a run of all rows, in order (`is_whole`)."""
    found = touches(function, {one, other}) if is_whole and one.size and other.size else None
    begin, end = spans(function, one, found)
    there, until = spans(function, other, found)
    group, other_group = one.nbytes // len(begin), other.nbytes // len(there)
    at = np.arange(max(0, distance), min(one.nbytes, distance + other.nbytes), math.gcd(group, other_group, distance))
    mine, others = at // group, (at - distance) // other_group
    return bool(np.all((end[mine] < there[others]) | (until[others] < begin[mine])))


def spans(function: Function, buffer: Buffer, found: dict[Buffer, Touches] | None) -> tuple[Integers, Integers]:
    """Return the first and last time at which each group of bytes of a buffer is needed in a run of the function."""
    first, last = by_statement(function, buffer) if found is None else (found[buffer].first, found[buffer].last)
    is_untouched = first == NEVER
    part = part_of(function, buffer)
    begin = np.where(is_untouched | np.array(part in ("operand", "both")), EVER, first)
    end = np.where(is_untouched | np.array(part in ("result", "both")), NEVER, last)
    return begin, end


def by_statement(function: Function, buffer: Buffer) -> tuple[Integers, Integers]:
    """Return the first and the last statement of the function's body that touches a buffer."""
    numbers = [n for n, stmt in enumerate(function.body) if any(buffer in named(inner) for inner in walk([stmt]))]
    return np.array([numbers[0] if numbers else NEVER]), np.array([numbers[-1] if numbers else -1])


def named(stmt: Stmt) -> tuple[Buffer, ...]:
    """Return the buffer of an access; empty for any other statement."""
    match stmt:
        case LoadFrom(address=address) | StoreTo(address=address) | LoadTile(address=address) | StoreTile(address=address):
            return (address.buffer,)
        case GatherFrom(buffer=buffer):
            return (buffer,)
    return ()
