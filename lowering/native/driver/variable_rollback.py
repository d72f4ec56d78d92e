"""The rollback of a failed run: a call that ends in a fault leaves every variable unchanged.

A fault is a failed check: that a variable has been written, or that a condition holds. In this process a loop may also be
interrupted. If every check and every loop comes before every write there is nothing to undo, and that is nearly always so.
Otherwise the driver copies the variables before a run that may fail late.
"""
from __future__ import annotations

from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step, walk
from ...loops.ir import buffers_written
from ...loops.program import Program


@dataclass(frozen=True, slots=True)
class Rollback:
    """The variables that a run may have changed when it fails, each with its offset in the room where a copy is kept. The flags
    follow the copies, a byte each, from `flags_at` on. A run cannot fail late if all of `checked` are written, unless it may
    `always`."""
    variables: tuple[tuple[Buffer, int], ...]
    checked: tuple[Buffer, ...]
    flags_at: int
    always: bool = False

    @property
    def nbytes(self) -> int:
        return self.flags_at + len(self.variables) if self.variables else 0


def rollback_of(program: Program, interruptible: bool = False) -> Rollback:
    """Return the variables that a failed run of `program` must restore; none if every check is before every write. If the
    program is `interruptible`, each iteration of a loop may fail."""
    if not program.variables:  # most programs
        return Rollback((), (), 0)
    risk = at_risk(program, program.steps, frozenset(), interruptible)
    written = [changed(program, step) for step in walk(program.steps)] if risk.variables else []
    variables: list[tuple[Buffer, int]] = []
    end = 0
    for buffer in dict.fromkeys(b for group in written for b in group if b in risk.variables):
        variables.append((buffer, end))
        end += -(-buffer.nbytes // 64) * 64
    checked = tuple(dict.fromkeys(s.variable for s in walk(program.steps) if isinstance(s, CheckWritten)))
    return Rollback(tuple(variables), checked, end, risk.always) if variables else Rollback((), (), 0)


@dataclass(frozen=True, slots=True)
class Risk:
    """The risk of a sequence of steps: the variables that may be written after it, those that may be written when one of its
    steps fails, and whether a failure can happen although all variables that are read were written before the run."""
    written: frozenset[Buffer]
    variables: frozenset[Buffer] = frozenset()
    always: bool = False

    def then(self, after: Risk) -> Risk:
        return Risk(after.written, self.variables | after.variables, self.always or after.always)


def at_risk(program: Program, steps: tuple[Step, ...], written: frozenset[Buffer], interruptible: bool) -> Risk:
    """Return the risk of steps before which the variables `written` may have been written."""
    found = Risk(written)
    for step in steps:
        found = found.then(step_at_risk(program, step, found.written, interruptible))
    return found


def step_at_risk(program: Program, step: Step, written: frozenset[Buffer], interruptible: bool) -> Risk:
    match step:
        case Branch(_, then, otherwise):
            first, second = (at_risk(program, steps, written, interruptible) for steps in (then, otherwise))
            return first.then(replace(second, written=first.written | second.written))
        case Loop(test, _, body):
            once = at_risk(program, test + body, written, interruptible)
            if once.written != written:  # the next iteration may fail after the writes of this one
                once = once.then(at_risk(program, test + body, once.written, interruptible))
            return once.then(Risk(once.written, once.written, bool(once.written))) if interruptible else once
        case CheckWritten():
            return Risk(written, written)
        case CheckTrue():
            return Risk(written, written, bool(written))
        case _:
            return Risk(written.union(changed(program, step)))


def changed(program: Program, step: Step) -> tuple[Buffer, ...]:
    """Return the variables that a step writes."""
    match step:
        case Compute(kernel):
            function = program.functions[kernel]
            return tuple(b for b in function.params if b.role == "variable" and b in buffers_written(function))
        case Parallel(tasks):
            return tuple(b for task in tasks for own in task for b in changed(program, own))
        case MarkWritten(variable):
            return (variable,)
    return ()
