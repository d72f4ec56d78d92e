"""What a run that fails must undo: a call that ends in a fault leaves every variable as it was.

A fault is a check that a variable has been written. Where every check comes before every write there is nothing to
undo, and that is nearly always so. Otherwise the driver copies the variables before a run in which a check may fail.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..elements.expression import Buffer
from ..fuse.kernel import Branch, CheckWritten, Compute, Loop, MarkWritten, Step, walk
from ..loops.ir import buffers_written
from ..loops.program import Program


@dataclass(frozen=True, slots=True)
class Backup:
    """The variables that a run may have changed when it fails, each with its offset in the room where a copy is kept.
    The flags lie behind, a byte each, from `flags_at` on."""
    variables: tuple[tuple[Buffer, int], ...]
    checked: tuple[Buffer, ...]
    flags_at: int

    @property
    def nbytes(self) -> int:
        return self.flags_at + len(self.variables) if self.variables else 0


def backup_of(program: Program) -> Backup:
    """What `program` must keep to be able to fail without a trace; nothing if every check is before every write."""
    written = [changed(program, step) for step in walk(program.steps)]
    if not fails_late(program, program.steps, False)[1]:
        return Backup((), (), 0)
    variables: list[tuple[Buffer, int]] = []
    end = 0
    for buffer in dict.fromkeys(b for group in written for b in group):
        variables.append((buffer, end))
        end += -(-buffer.nbytes // 64) * 64
    checked = tuple(dict.fromkeys(s.variable for s in walk(program.steps) if isinstance(s, CheckWritten)))
    return Backup(tuple(variables), checked, end)


def fails_late(program: Program, steps: tuple[Step, ...], written: bool) -> tuple[bool, bool]:
    """Whether a variable may have been written after `steps`, and whether one of them may fail when it has. `written`
    says whether one may have been before."""
    late = False
    for step in steps:
        match step:
            case Branch(_, then, otherwise):
                first, second = fails_late(program, then, written), fails_late(program, otherwise, written)
                written, late = first[0] or second[0], late or first[1] or second[1]
            case Loop(test, _, body):
                turn, before = test + body, written
                written, late = merge(late, fails_late(program, turn, written))
                if written and not before:  # what one turn writes, the next may fail after
                    written, late = merge(late, fails_late(program, turn, True))
            case CheckWritten():
                late = late or written
            case _:
                written = written or bool(changed(program, step))
    return written, late


def merge(late: bool, found: tuple[bool, bool]) -> tuple[bool, bool]:
    written, fails = found
    return written, late or fails


def changed(program: Program, step: Step) -> tuple[Buffer, ...]:
    """The variables that a step writes."""
    match step:
        case Compute(kernel):
            function = program.functions[kernel]
            return tuple(b for b in function.params if b.role == "variable" and b in buffers_written(function))
        case MarkWritten(variable):
            return (variable,)
    return ()
