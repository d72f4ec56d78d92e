"""What a compiled function needs: memory with its proven lower bound, kernels, variables, the seconds of each stage.

Made from the program and its plan alone, so it is there before anything runs; it prints, and gives itself as a dict.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..lowering.elements.expression import Buffer
    from .stages import Lowered


@dataclass(frozen=True, slots=True)
class BufferLine:
    """A buffer of the program, in bytes; `offset` is its place in the arena."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A kernel: what it writes, and the operators that it computes, the last one first."""
    writes: str
    operators: str
    place: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """Sizes in bytes. `lower_bound` is the least arena that any plan of this program could have; `arena` is what the
    planned buffers need, to the byte; `undo` is room behind it for copies of variables, in programs that may fail after they
    have written one."""
    name: str
    inputs: tuple[BufferLine, ...]
    outputs: tuple[BufferLine, ...]
    variables: tuple[BufferLine, ...]
    arena: int
    lower_bound: int
    undo: int
    algorithm: str
    constants: int
    kernels: tuple[KernelLine, ...]
    steps: int
    buffers: tuple[BufferLine, ...]
    target: str
    seconds: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        bound = "which no plan can undercut" if self.arena == self.lower_bound else f"lower bound {self.lower_bound:,}"
        bound += f", and {self.undo:,} for copies of variables" if self.undo else ""
        rows = [("inputs", listed(self.inputs)), ("outputs", listed(self.outputs)),
                ("variables", listed(self.variables)), ("arena", f"{self.arena:,} bytes ({bound})"),
                ("constants", f"{self.constants:,} bytes"), ("kernels", f"{len(self.kernels)} in {self.steps} steps"),
                ("target", self.target),
                ("seconds", ", ".join(f"{name} {value:.3f}" for name, value in self.seconds.items()))]
        lines = [self.name, *(f"  {name:<10} {text}" for name, text in rows)]
        lines += ["", *table(("kernel", "writes", "operators"),
                             [(str(i), k.writes, k.operators) for i, k in enumerate(self.kernels)])]
        if self.buffers:
            lines += ["", *table(("offset", "bytes", "buffer"),
                                 [(str(b.offset), str(b.nbytes), f"{b.name}: {b.dtype}{list(b.shape)}")
                                  for b in sorted(self.buffers, key=lambda b: (b.offset or 0, b.name))])]
        return "\n".join(lines)


def report(lowered: Lowered) -> Report:
    """The report of a function after lowering."""
    from ..lowering.memory.plan import names_of
    from ..lowering.native.backup import backup_of
    program, plan = lowered.program, lowered.plan
    places, names = plan.allocations, names_of(program)
    buffers = tuple(line(b, name, places[name].byte_offset) for b, name in names.items() if name in places)
    kernels = tuple(KernelLine(f"{k.out.name}: {k.out.dtype}{list(k.out.shape)}", k.origin,
                               None if k.position is None else str(k.position)) for k in program.kernels)
    return Report(
        program.name, lines(program.inputs), lines(program.outputs), lines([v.buffer for v in program.variables]),
        plan.size_bytes, plan.lower_bound, backup_of(program).nbytes, plan.algorithm,
        sum(b.nbytes for b in program.constants), kernels, len(program.steps), buffers,
        f"{lowered.target.triple}, {lowered.target.cpu}", dict(lowered.seconds))


def line(buffer: Buffer, name: str | None = None, offset: int | None = None) -> BufferLine:
    return BufferLine(name or buffer.name, buffer.dtype, buffer.shape, buffer.nbytes, offset)


def lines(buffers: Sequence[Buffer]) -> tuple[BufferLine, ...]:
    return tuple(map(line, buffers))


def listed(buffers: Sequence[BufferLine]) -> str:
    return ", ".join(f"{b.name} {b.dtype}{list(b.shape)}" for b in buffers) or "none"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    right = [bool(rows) and all(row[i].isdigit() for row in rows) for i in range(len(head))]
    return ["  " + "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right)).rstrip()
            for row in (head, *rows)]
