"""Records of how the loops of a program's kernels were made: the loop nests of each kernel with the strategy of each, the rows
that run at a time, and the tasks among which threads divide the work. They are made with the loops and kept beside them, so
that the schedule shown is the one that runs. `schedule.schedule_text` prints the records and reads them back.
"""
from __future__ import annotations

from dataclasses import field

from ...runtime.errors import Position
from ...runtime.records import dataclass


@dataclass(frozen=True, slots=True)
class NestRecord:
    """A loop nest, its axes with their extents, outermost first, and its strategy as text. `position` is its position in a
    schedule text."""
    name: str
    axes: tuple[tuple[str, int], ...]
    strategy: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RowRecord:
    """A kernel that is tiled by rows together with others, in `tasks` tasks that run at the same time. If `kept` is not None,
    only the last `kept` rows of its result stay."""
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
    """The division of a function among threads: `count` tasks, by ranges of the iterations of `loops` (number of the index
    variable, number of iterations), with a barrier after each of `phases` phases. The longest task takes about `cycles`
    cycles, the whole function about `whole`."""
    count: int
    loops: tuple[tuple[int, int], ...]
    phases: int
    cycles: int
    whole: int
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """The schedule of a kernel. `in_floats` is the reason why it computes a contraction in float32 where limbs are allowed."""
    origin: str
    nests: tuple[NestRecord, ...]
    rows: RowRecord | None = None
    chain: ChainRecord | None = None
    tasks: TaskRecord | None = None
    in_floats: str = ""
    position: Position | None = field(default=None, compare=False)
