"""Checks in fusion: what ends a run becomes a step of its own, between the kernels before and behind it.

What is known when compiling is no step: a check that always holds is nothing. One that never does is refused at once if every
run comes to it, because no call of the function could ever succeed; in a branch or a loop, where perhaps no run comes to it, it
is made when running.
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
    """The operator of a check becomes a step, where running decides it."""
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
    """A constant condition where a step can look at it."""
    value, = operation.operands
    buffer = fuser.buffer(value)
    fuser.emit(buffer, fuser.tensors[value], "copy", operation.position)
    return buffer


def checks_first(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Checks of variables that every run makes come as early as they may, most of them before anything is written, so that a
    run that fails has nothing to undo. A check stays behind what may mark its variable, in a branch or a loop too, and behind
    every other check: the first one that fails is the one that is reported."""
    placed: list[list[Step]] = [[] for _ in range(len(steps) + 1)]  # what comes first, and then each step with what follows it
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
