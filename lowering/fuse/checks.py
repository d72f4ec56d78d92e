"""Checks in fusion: what ends a run becomes a step of its own, between the kernels before and behind it.

What is known when compiling is no step: a check that always holds is nothing. One that never does is refused at once if every
run comes to it, because no call of the function could ever succeed; in a branch or a loop, where perhaps no run comes to it, it
is made when running.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..graph.graph import Operation
from .kernel import CheckTrue, CheckWritten, Fault, Step, walk

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
    """Checks of variables that every run makes come before anything is written, so that a run that fails has nothing to undo;
    not before a check of the graph's own, so that the first one that fails is the one that is told."""
    return tuple(step for segment in segments(steps) for step in first(segment))


def first(steps: Sequence[Step]) -> list[Step]:
    checks: list[Step] = [s for s in steps if isinstance(s, CheckWritten)]
    return checks + [s for s in steps if not isinstance(s, CheckWritten)]


def segments(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Steps up to each one in which the graph checks something."""
    segment: list[Step] = []
    for step in steps:
        segment.append(step)
        if any(isinstance(s, CheckTrue) for s in walk((step,))):
            yield segment
            segment = []
    yield segment
