"""The needs of a lowered function on each board, with code for the board's own processor.

Work is shared as far as possible: the graph and its fusion by all processors that look the same to graph passes
(`seen_by_graph`), the loops and the plan by all that lowering does not distinguish (`lowering_key`), the object by all boards
with one processor. Each board has one memory of each kind, whatever memories the function was lowered for; a schedule or tuning
is for the machine that it was made for, and is not used. A processor gets no code if the constants or the RAM already exceed
each of its boards: the needs are then those without code.
"""
from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ....lowering.memory.buffers import PoolInfo
from ....lowering.options import CompileOptions
from ....lowering.pipeline import PASSES, Clock, SeenByGraph, State, passes_until, run, seen_by_graph
from ....lowering.target.boards import BOARDS, Board
from ....lowering.target.machines import MACHINES
from ....lowering.target.target import Target
from ....runtime.errors import Problem
from ....runtime.progress import counted
from .build_report import report
from .figures import BoardFit, ObjectSize
from .fit import fit_board
from .object_size import object_size, source_size

if TYPE_CHECKING:
    from ...stage_data import LoweredData
    from .shown_report import Report

C_ONLY = "code is your compiler's, from C source: it and its stack are not counted"
WITHOUT_CODE = "no code was compiled: memory is over without it"
NO_STACK = "no bound of the stack is known"
IO_ELSEWHERE = "inputs and outputs lie elsewhere, as --io-elsewhere says"

FUSED = passes_until("fuse")
"""The passes through fusion: those that depend on a machine use only `seen_by_graph` of it."""


def judge_boards(lowered: LoweredData, boards: Sequence[Board] = BOARDS, io_elsewhere: bool = False) -> tuple[BoardFit, ...]:
    """Return the verdict for each board, without the caller's inputs and outputs if these are elsewhere. Record the seconds of
    all as those of a stage, boards."""
    clock, begin = Clock(lowered.seconds), time.perf_counter()
    judge = Judge(lowered, io_elsewhere)
    machines = list(dict.fromkeys(board.machine for board in boards))
    found = {name: judge.needs(name, [b for b in boards if b.machine == name]) for name in counted("processors", machines)}
    clock.note("boards", begin)
    return tuple(fit(board, found[board.machine], io_elsewhere) for board in boards)


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a function on a machine; None and the reason if it cannot be compiled for it."""
    figures: Report | None
    note: str = ""


def fit(board: Board, needs: Needs, io_elsewhere: bool) -> BoardFit:
    memories = fit_board(needs.figures, board.ram, board.flash, io_elsewhere) if needs.figures else ()
    return BoardFit(board.name, board.chip, board.machine, board.source, memories,
                    "; ".join(filter(None, (needs.note, IO_ELSEWHERE if io_elsewhere else ""))))


@dataclass(slots=True)
class Judge:
    """One function, lowered for one machine after the other. `fused` and `lowerings` hold the results so far, by the properties
    of a machine that the passes see."""
    lowered: LoweredData
    io_elsewhere: bool
    fused: dict[SeenByGraph, State] = field(default_factory=dict)
    lowerings: dict[Hashable, tuple[LoweredData, Report]] = field(default_factory=dict)

    def needs(self, machine: str, boards: Sequence[Board]) -> Needs:
        """Return the needs of the function on a machine that these boards have."""
        target = MACHINES[machine].target
        try:
            lowered, figures = self.lowered_for(target)
            least = replace(figures, object=ObjectSize(0, distinct_bytes(lowered), 0, 0, 0))
            if all(self.is_over(least, board) for board in boards):
                return Needs(least, WITHOUT_CODE)
            if not target.has_object_code:
                return Needs(replace(figures, object=source_size(lowered)), C_ONLY)
            measured = object_size(lowered)
        except Problem as problem:
            return Needs(None, problem.message)
        return Needs(replace(figures, object=measured), "" if measured and measured.stack is not None else NO_STACK)

    def is_over(self, figures: Report, board: Board) -> bool:
        return any(line.over for line in fit_board(figures, board.ram, board.flash, self.io_elsewhere))

    def lowered_for(self, target: Target) -> tuple[LoweredData, Report]:
        """Return the function for a machine, and its report without code; reuse those of a machine that lowering does not
        distinguish."""
        key = lowering_key(target)
        if key not in self.lowerings:
            lowered = self.lower(target)
            self.lowerings[key] = lowered, report(lowered)
        lowered, figures = self.lowerings[key]
        return replace(lowered, target=target), figures

    def lower(self, target: Target) -> LoweredData:
        options, seen, traced = for_boards(self.lowered.options, target), seen_by_graph(target), self.lowered.traced
        if seen not in self.fused:
            self.fused[seen] = run(State(traced.name, target, 1, options, traced.module), FUSED)
        found = run(replace(self.fused[seen], target=target, options=options), PASSES[len(FUSED):])
        assert found.kernels is not None and found.plan is not None
        return replace(self.lowered, module=found.graph, kernels=found.kernels, program=found.program, plan=found.plan,
                       target=target, threads=1, options=options, seconds={})


def for_boards(options: CompileOptions, target: Target) -> CompileOptions:
    """Return the options for a board: one RAM, one flash, one thread, no schedule that was made for another machine, and
    weights as pairs only if the processor multiplies pairs."""
    memory = replace(options.memory, pools=(PoolInfo("workspace"),), constant_pools=(), pins={}, accessor=None, alignment=None)
    weights = options.weights if target.keeps_pairs else "int8"
    return replace(options, target=target, threads=1, tuning=(), schedule=None, memory=memory, weights=weights)


def lowering_key(target: Target) -> Hashable:
    """Return the properties of a microcontroller that the passes from fusion to the plan may see: all but its name, and of its
    features those that they ask for, or that products are made of. A test checks this for every pair of machines that boards
    have."""
    return (seen_by_graph(target), replace(target, triple="", cpu="", features=""), target.micro_kernels,
            target.has_slow_integer_products, target.has_float16, target.keeps_float16, target.keeps_int4,
            target.integer_registers)


def distinct_bytes(lowered: LoweredData) -> int:
    """Return the bytes of the constants that kernels read, equal ones once: the minimum that an object has of them."""
    initial = {use.initial for use in lowered.program.variables}
    return sum({(b.dtype, b.data.tobytes()): b.nbytes for b in lowered.program.constants
                if b.data is not None and b not in initial}.values())
