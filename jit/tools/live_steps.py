"""The bytes live in each pool of a plan while a step of a call runs: maps the steps that a profile recorded to the ticks of the
plan's lifetimes.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...lowering.kernels.kernel import Compute, Parallel
from ...lowering.loops.program import Program
from ...lowering.memory.plan import Plan
from ...lowering.native.driver.driver import row_count
from .report.build_report import in_line, planned_lines, ticks
from .report.live import live_bytes

Ran = tuple[int, int, int]
"""A kernel, and the first and end row that it computed."""


def live_in_pools(program: Program, plan: Plan, ran: Sequence[Ran]) -> Iterator[tuple[int, ...]]:
    """Yield the bytes that are live in each workspace pool of a plan, for each step that ran."""
    buffers, timeline = list(planned_lines(program, plan, tuple(ticks(program.steps)))), list(in_line(program.steps))
    curves = [live_bytes([b for b in buffers if b.pool == pool.name], len(timeline)) for pool in plan.workspace_pools]
    for tick in ticks_of(places_of(program), ran):
        yield tuple(curve[tick] for curve in curves)


def places_of(program: Program) -> Mapping[int, list[tuple[int, int, int]]]:
    """Return the ticks at which each kernel runs, with the rows that it computes at each."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for tick, step in enumerate(in_line(program.steps)):
        computed = (step,) if isinstance(step, Compute) else (
            [s for task in step.tasks for s in task] if isinstance(step, Parallel) else ())
        for s in computed:
            whole = max(row_count(program.kernels[s.kernel]), *program.functions[s.kernel].phases, 0)
            found.setdefault(s.kernel, []).append((tick, *(s.rows or (0, whole))))
    return found


def ticks_of(places: Mapping[int, Sequence[tuple[int, int, int]]], ran: Sequence[Ran]) -> Iterator[int]:
    """Yield the tick of each step that ran: among several ticks with its rows, the next one not before the previous step, or
    the first."""
    last = -1
    for kernel, low, high in ran:
        fitting = [tick for tick, first, end in places[kernel] if first <= low and high <= end]
        last = next((tick for tick in fitting if tick >= last), fitting[0])
        yield last
