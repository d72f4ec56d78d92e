"""The figures of a report, as frozen data: sizes and places in bytes, moments as ticks.

A tick is one executed step of the program in its linear order (a kernel or some rows of one, a test of a branch or loop, a
check of a variable); lifetimes are spans of ticks, both ends included. Everything a picture, a comparison or a fit needs is
here, so that they can be made from a saved report as well.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FORMAT = "tosaic report 1"
"""What a saved report says that it is."""

BRIEF = 3
"""Operators that a short name of a kernel holds."""

Span = tuple[int, int]
StepKind = Literal["compute", "test", "check", "mark"]


@dataclass(frozen=True, slots=True)
class BufferLine:
    """A buffer of the program, by its name in the plan; `label` is what the model calls it. One that is planned lies at
    `offset` in `pool`, for the spans of ticks in `live`; `kind` is intermediate, scratch (inside one kernel), input, output or
    constant. `producer` is the kernel that writes it first, `last_reader` the one that reads it last, where there are such. A
    run reads and writes `read` and `written` bytes of it. Inputs, outputs, variables and constants say what their integers
    stand for, where the model does: `scales` and `zero_points`, one of each or as many as indices along `axis`."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    offset: int | None = None
    pool: str | None = None
    kind: str | None = None
    live: tuple[Span, ...] = ()
    producer: int | None = None
    last_reader: int | None = None
    read: int = 0
    written: int = 0
    strides: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int | None = None
    label: str | None = None

    @property
    def called(self) -> str:
        """What the model calls it; where that is not known, its name in the plan."""
        return self.label or self.name

    @property
    def type(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def end(self) -> int:
        """Offset of the first byte behind it."""
        return (self.offset or 0) + self.nbytes


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A kernel: what it writes, the operators that it computes (the last one first), their place in the model, the line of the
    model there, cut to a line's length, and what the model calls the result."""
    writes: str
    operators: str
    place: str | None
    source: str | None = None
    label: str | None = None

    @property
    def brief(self) -> str:
        """The operators, or the last ones if there are many."""
        words = self.operators.split()
        return " ".join(words[:BRIEF]) + (" ..." if len(words) > BRIEF else "")


@dataclass(frozen=True, slots=True)
class StepLine:
    """One tick: kernel number `kernel`, all of it or some `rows`; or a test, check or mark, which no kernel does."""
    kind: StepKind
    kernel: int | None = None
    rows: Span | None = None


@dataclass(frozen=True, slots=True)
class Peak:
    """The first tick at which the most bytes are live: how many, the kernel that runs, the buffers alive (largest first)."""
    tick: int
    kernel: int | None
    nbytes: int
    alive: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolLine:
    """A pool: what its buffers need, what it may hold (None: any), the most bytes that are live at once by this schedule
    (whatever may share bytes counts once), the peak (None for one of constants, or one that is empty), and the bytes that
    a run reads and writes in it: each load and store that is executed, as without a cache."""
    name: str
    kind: str
    nbytes: int
    limit: int | None
    live_bytes: int
    alignment: int
    peak: Peak | None = None
    read: int = 0
    written: int = 0

    @property
    def moved(self) -> int:
        """Bytes that a run moves through it."""
        return self.read + self.written

    @property
    def waste(self) -> int:
        """Bytes above those that are live at once."""
        return self.nbytes - self.live_bytes


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to hold what lies between operators, from the simplest to the plan: the bytes it takes, and the most
    of the same buffers that are live at once."""
    name: str
    nbytes: int
    live_bytes: int
    explanation: str


@dataclass(frozen=True, slots=True)
class NarrowConstants:
    """Constants of a type that is narrower than the one computed in, "float16" or "int4", because the processor converts them
    when it reads them: the bytes saved, and for that the conversions of a run, and its instructions more. Of bytes that are
    kept as "int16", so that nothing converts them, all three are negative."""
    type: str
    saved: int
    conversions: int
    instructions: int


@dataclass(frozen=True, slots=True)
class ObjectSize:
    """The sections of the object file for the target. `text` is code, `constants` the model's constants that are in no pool
    (equal ones once; initial values of variables, too), `tables` what else is only read (of the compiler's making, and
    padding), `data` what start-up code copies, of which tosaic makes none, `zero` variables. `stack` is the most that a call
    of any of its functions takes, None where no bound is known."""
    text: int
    constants: int
    tables: int
    data: int
    zero: int
    stack: int | None = None


Memory = Literal["RAM", "flash", "stack"]


@dataclass(frozen=True, slots=True)
class Need:
    """Something that takes bytes of a memory."""
    what: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class FitLine:
    """A memory, what it may hold, and what was counted in it."""
    name: str
    memory: Memory
    limit: int
    counted: tuple[Need, ...]

    @property
    def nbytes(self) -> int:
        return sum(n.nbytes for n in self.counted)

    @property
    def over(self) -> int:
        """Bytes too many; 0 where it fits."""
        return max(0, self.nbytes - self.limit)

    @property
    def verdict(self) -> str:
        return f"over by {self.over:,} bytes" if self.over else "fits"

    @property
    def sum(self) -> str:
        """What was counted, in words."""
        return " + ".join(f"{n.what} {n.nbytes:,}" for n in self.counted if n.nbytes) or "nothing"

    def as_dict(self) -> dict[str, Any]:
        """{name, memory, limit, nbytes, over, counted: list of {what, nbytes}}."""
        return asdict(self) | {"nbytes": self.nbytes, "over": self.over}


@dataclass(frozen=True, slots=True)
class BoardFit:
    """A board, judged with code for its own processor, the machine that `core` names: what the program needs of its flash, its
    RAM and its stack, each against what there is. The stack's limit is the RAM that all else leaves. `source` says where the
    sizes are from; `note` what is missing in the needs. For a program that cannot be compiled for it there are no `memories`,
    and the note says why."""
    name: str
    chip: str
    core: str
    source: str
    memories: tuple[FitLine, ...]
    note: str = ""

    @property
    def fits(self) -> bool:
        return bool(self.memories) and not any(line.over for line in self.memories)

    @property
    def verdict(self) -> str:
        """True if it fits, and by how much it does not."""
        if not self.memories:
            return "does not compile"
        over = [f"{line.memory} over by {line.over:,}" for line in self.memories if line.over and line.memory != "stack"]
        return "fits" if self.fits else f"does not fit: {', '.join(over)}"

    def memory(self, kind: Memory) -> FitLine | None:
        return next((line for line in self.memories if line.memory == kind), None)

    def as_dict(self) -> dict[str, Any]:
        """{name, chip, core, source, note, fits, memories: those of `FitLine.as_dict`}."""
        return asdict(self) | {"fits": self.fits, "memories": [line.as_dict() for line in self.memories]}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a compiled function needs, in bytes.

    `arena` is what the planned buffers need in all workspace pools, to the byte; `live_bytes` is the most of them that is
    live at once by this schedule, where bytes that may be shared count once; `lower_bound` is what every schedule of the
    model's kernels on this machine needs (`lowering.memory.model_bound`); `undo` is room behind it for copies of
    variables, in programs that may fail after they have written one (in this process a call has such room for loops that
    Ctrl-C ends, too). `is_proved` says that no plan of this schedule, by the same rules of sharing, is better. `peak` is
    that of all workspace pools together. `ladder`, `object` and `boards` are there where they were asked for: they need
    more plans, a compile, and a compile for each processor. `objective` is what counted first among several pools.
    """
    name: str
    inputs: tuple[BufferLine, ...]
    outputs: tuple[BufferLine, ...]
    variables: tuple[BufferLine, ...]
    arena: int
    live_bytes: int
    undo: int
    algorithm: str
    constants: int
    kernels: tuple[KernelLine, ...]
    steps: int
    buffers: tuple[BufferLine, ...]
    target: str
    seconds: dict[str, float]
    pools: tuple[PoolLine, ...] = ()
    peak: Peak | None = None
    timeline: tuple[StepLine, ...] = ()
    constant_buffers: tuple[BufferLine, ...] = ()
    ladder: tuple[Rung, ...] = ()
    object: ObjectSize | None = None
    in_float: tuple[str, ...] = ()
    made_from: str = ""
    narrow: tuple[NarrowConstants, ...] = ()
    is_proved: bool = False
    boards: tuple[BoardFit, ...] = ()
    lower_bound: int = 0
    objective: str = "traffic"
    format: str = field(default=FORMAT)

    @property
    def waste(self) -> int:
        """Bytes of the arena above those that are live at once."""
        return self.arena - self.live_bytes

    @property
    def moved(self) -> int:
        """Bytes that a run moves through the workspace pools: through one of them, if everything lay there."""
        return sum(p.moved for p in self.workspace_pools)

    @property
    def state(self) -> int:
        """Bytes of the variables."""
        return sum(v.nbytes for v in self.variables)

    def state_in(self, pool: str) -> int:
        """Bytes of the variables that are pinned to a pool."""
        return sum(v.nbytes for v in self.variables if v.pool == pool)

    @property
    def workspace_pools(self) -> tuple[PoolLine, ...]:
        return tuple(p for p in self.pools if p.kind == "workspace")

    @property
    def constant_pools(self) -> tuple[PoolLine, ...]:
        return tuple(p for p in self.pools if p.kind == "constant")

    def held_by(self, pool: str) -> tuple[BufferLine, ...]:
        """The buffers of a pool, by offset."""
        return tuple(sorted((b for b in self.buffers if b.pool == pool), key=lambda b: (b.offset or 0, b.name)))

    def as_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers; what `tosaic report --json` prints, and `saved.read` reads.

        Keys: name, target, algorithm, seconds {stage: seconds}, format; arena, live_bytes, lower_bound, undo, constants,
        steps (numbers); inputs, outputs, variables, buffers, constant_buffers: lists of {name, dtype, shape, nbytes,
        offset, pool, kind, live [[first, last], ...], producer, last_reader, read, written, strides, scales,
        zero_points, axis, label}; kernels: list of {writes, operators, place, source, label}; timeline: list of
        {kind, kernel, rows}; peak: null or {tick, kernel, nbytes, alive [names]}; pools: list of {name, kind, nbytes,
        limit, live_bytes, alignment, peak, read, written}; ladder: list of {name, nbytes, live_bytes, explanation};
        object: null or {text, constants, tables, data, zero, stack}; in_float: list of strings; made_from: what an
        ONNX file imports, and what wrote it; narrow: list of {type, saved, conversions, instructions}; is_proved; objective;
        boards: those of `BoardFit.as_dict`. Kernels are numbers into `kernels`, ticks numbers into `timeline`; read
        and written are bytes in a run.
        """
        return asdict(self) | {"boards": [board.as_dict() for board in self.boards]}
