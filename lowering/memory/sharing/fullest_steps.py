"""The steps at which memory is fullest: those of which it pays to know when, inside the kernel, each buffer is in use.

A kernel that runs as a whole needs its dying operands when it begins and its results when it ends, beside what outlives it; so
much every plan has. It pays to look into a kernel that needs more than the most of that at any step, and into no other.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import numpy as np

from ...elements.expression import Buffer
from ...loops.ir import Function, buffers_written
from ...loops.program import Program
from ..buffers import Ticks
from .instants import INSTANTS, Instants, by_elements, by_stages
from .occupancy import Table, is_made, last_read, occupancy, timed, whole_kernels

Over = tuple[Buffer, Buffer, int]
"""An operand, a result that may be written exactly over it, and the tick."""


def instants_inside(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]], over: Iterable[Over]) -> dict[int, Instants]:
    """The instants of the steps that run some rows, and of kernels at which memory is fullest, by tick."""
    if not program.kernels:
        return {}
    inside = {tick: by_stages(program.functions[step.kernel]) for tick, step in timed(program.steps) if step.rows is not None}
    needed = most_by_tick(occupancy(program, live, inside).counts.values(), over)
    whole = {tick: program.functions[step.kernel] for tick, step in whole_kernels(program)}
    least = {tick: nbytes - overlapping(whole[tick], tick, live) if tick in whole else nbytes
             for tick, nbytes in needed.items()}
    floor = max(least.values(), default=0)
    for tick, function in whole.items():
        if needed.get(tick, 0) > floor:
            inside[tick] = by_elements(function) or by_stages(function)
    return inside


def most_by_tick(counts: Iterable[Table], over: Iterable[Over]) -> dict[int, int]:
    """The most bytes that are occupied at a moment of each tick at which that changes; at one, less what is written over
    operands."""
    _, nbytes, written, read = np.concatenate([np.zeros((0, 4), np.int64), *counts]).T
    moments = np.unique(np.concatenate((written, read + 1)))
    change = np.zeros(len(moments), np.int64)
    np.add.at(change, np.searchsorted(moments, written), nbytes)
    np.add.at(change, np.searchsorted(moments, read + 1), -nbytes)
    found: dict[int, int] = {}
    for moment, total in zip(moments.tolist(), np.cumsum(change).tolist()):
        found[moment // INSTANTS] = max(found.get(moment // INSTANTS, 0), total)
    for tick, pairs in itertools.groupby(over, lambda pair: pair[2]):
        saved = {result: operand.nbytes for operand, result, _ in pairs}
        found[tick] = found.get(tick, 0) - sum(min(result.nbytes, nbytes) for result, nbytes in saved.items())
    return found


def overlapping(function: Function, tick: int, live: Mapping[Buffer, tuple[Ticks, ...]]) -> int:
    """Bytes of scratch, and of operands and results that a kernel may not need together."""
    dying = sum(b.nbytes for b in last_read(function, tick, live) if b not in buffers_written(function))
    made = sum(b.nbytes for b in function.params if b in buffers_written(function) and is_made(b, function)
               and live.get(b, ((-1, -1),))[0][0] == tick)
    return min(dying, made) + sum(b.nbytes for b in function.scratch if b in live)
