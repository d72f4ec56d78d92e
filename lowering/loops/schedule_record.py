"""How the loops of a program's kernels have come about: the nests of each kernel with the strategy of each, the rows that run
at a time, and the tasks among which threads divide the work. Made with the loops and kept beside them, so that what is shown
is what runs. `schedule.schedule_text` prints it and reads it back.
"""
from __future__ import annotations

from dataclasses import field

from ...runtime.errors import Position
from ...runtime.records import dataclass


@dataclass(frozen=True, slots=True)
class NestRecord:
    """A loop nest, its axes with their extents, outermost first, and its strategy as text. `position` is where a text says
    so."""
    name: str
    axes: tuple[tuple[str, int], ...]
    strategy: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RowRecord:
    """A kernel that is tiled by rows with others; divided into `tasks` that run at the same time. Of its result only the
    last `kept` of all rows stay, where that is not None."""
    tasks: int = 1
    kept: int | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ChainRecord:
    """A kernel whose loops are inside those of kernel number `last`, at most `rows` rows at a time."""
    last: int
    rows: int
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """How threads divide a function: into `count` tasks, by ranges of the iterations of `loops` (the number of the index
    variable, the iterations), with a barrier after each of `phases` phases. The longest task takes about `cycles`, all of
    them about `whole`."""
    count: int
    loops: tuple[tuple[int, int], ...]
    phases: int
    cycles: int
    whole: int
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """The schedule of a kernel. `in_floats` says why its contraction is computed in float32 where limbs are allowed."""
    origin: str
    nests: tuple[NestRecord, ...]
    rows: RowRecord | None = None
    chain: ChainRecord | None = None
    tasks: TaskRecord | None = None
    in_floats: str = ""
    position: Position | None = field(default=None, compare=False)
