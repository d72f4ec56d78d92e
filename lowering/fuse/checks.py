"""Checks in fusion: a check, which may end a run, becomes a separate step between the kernels before and after it.

A check of a constant is decided while compiling. If the check always holds, it becomes no step. If it never holds and every run
reaches it, it is a compile-time error, because no call of the function could ever succeed. If it never holds and is in a branch
or a loop, which perhaps no run reaches, it becomes a step.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..graph.graph import Operation
from ..kernels.kernel import CheckTrue, CheckWritten, Fault, MarkWritten, Step, walk

if TYPE_CHECKING:
    from .fuse import Fuser


def check(fuser: Fuser, operation: Operation) -> None:
    """Lower a check to a step, unless the check is decided while compiling."""
    value, = operation.operands
    home = fuser.materialize(value, operation.position)
    message: str = operation.op.message  # type: ignore[attr-defined]
    if home.data is not None:
        if home.data.item():
            return
        if len(fuser.scopes) == 1:
            raise Problem(message, operation.position, kind="check",
                          help="this fails in every call: the condition is a constant")
        home = copied(fuser, operation)
    fuser.faults.append(Fault(message, operation.position, kind="check"))
    fuser.step(CheckTrue(home, len(fuser.faults) - 1))


def copied(fuser: Fuser, operation: Operation) -> Buffer:
    """Copy a constant condition to a buffer that a step can read."""
    value, = operation.operands
    buffer = fuser.buffer(value)
    fuser.emit(buffer, fuser.tensors[value], "copy", operation.position)
    return buffer


def checks_first(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Move the checks of variables that every run makes as early as possible, most of them before anything is written, so that
    a run that fails has nothing to undo. A check stays after each step that may mark its variable, even in a branch or a loop,
    and after every other check: the first check that fails is the one that is reported."""
    placed: list[list[Step]] = [[] for _ in range(len(steps) + 1)]  # first checks, then each step with the checks after it
    last_check = 0
    marks: dict[Buffer, int] = {}
    for place, step in enumerate(steps, start=1):
        if isinstance(step, CheckWritten):
            last_check = max(last_check, marks.get(step.variable, 0))
            placed[last_check].append(step)
            continue
        placed[place].append(step)
        for inner in walk((step,)):
            match inner:
                case MarkWritten(variable):
                    marks[variable] = place
                case CheckTrue() | CheckWritten():
                    last_check = place
    return tuple(chain.from_iterable(placed))
