"""The figures of a report, as frozen data: sizes and offsets in bytes, times as ticks.

A tick is one executed step of the program in its linear order (a kernel or some rows of one, a test of a branch or loop, a
check of a variable); lifetimes are spans of ticks, both ends included. These figures suffice for a picture, a comparison or a
fit, so that each can be made from a saved report as well.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FORMAT = "tosaic report 1"
"""Format name and version in a saved report."""

BRIEF = 3
"""Maximum number of operators in a short name of a kernel."""

Span = tuple[int, int]
StepKind = Literal["compute", "test", "check", "mark"]


@dataclass(frozen=True, slots=True)
class BufferLine:
    """A buffer of the program, by its name in the plan; `label` is the model's name for it. A planned buffer is at `offset` in
    `pool`, for the spans of ticks in `live`; `kind` is intermediate, scratch (inside one kernel), input, output or constant.
    `producer` is the kernel that writes it first, `last_reader` the one that reads it last, if there are any. A run reads and
    writes `read` and `written` bytes of it. Inputs, outputs, variables and constants have the quantization of their integers,
    if the model has it: `scales` and `zero_points`, one of each or as many as indices along `axis`."""
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
        """Name of the buffer in the model; if that is unknown, in the plan."""
        return self.label or self.name

    @property
    def type(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def end(self) -> int:
        """Offset of the first byte after the buffer."""
        return (self.offset or 0) + self.nbytes


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A kernel: the buffer that it writes, the operators that it computes (the last one first), their position in the model,
    the line of the model there, truncated, and the model's name for the result."""
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
    """One tick: kernel number `kernel`, all of it or some `rows`; or a test, check or mark, which belongs to no kernel."""
    kind: StepKind
    kernel: int | None = None
    rows: Span | None = None


@dataclass(frozen=True, slots=True)
class Peak:
    """The first tick at which the most bytes are live: their number, the kernel that runs, the live buffers (largest first)."""
    tick: int
    kernel: int | None
    nbytes: int
    alive: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolLine:
    """A pool: the bytes that its buffers need, its limit (None: any), the maximum bytes live at once by this schedule (shared
    bytes count once), the peak (None for a pool of constants, or an empty one), and the bytes that a run reads and writes in
    it: each load and store that is executed, as without a cache."""
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
        """Bytes that a run moves through the pool."""
        return self.read + self.written

    @property
    def waste(self) -> int:
        """Bytes above those that are live at once."""
        return self.nbytes - self.live_bytes


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to hold the values between operators, from the simplest to the plan: the bytes it takes, and the maximum bytes of
    the same buffers live at once."""
    name: str
    nbytes: int
    live_bytes: int
    explanation: str


@dataclass(frozen=True, slots=True)
class NarrowConstants:
    """Constants of a type narrower than the one computed in, "float16" or "int4", because the processor converts them when it
    reads them: the bytes saved, and in return the conversions of a run, and its additional instructions. For bytes kept as
    "int16", so that nothing converts them, all three are negative."""
    type: str
    saved: int
    conversions: int
    instructions: int


@dataclass(frozen=True, slots=True)
class ObjectSize:
    """The sections of the object file for the target. `text` is code, `constants` the model's constants that are in no pool
    (equal ones once; including initial values of variables), `tables` all other read-only data (of the compiler, and padding),
    `data` the bytes that start-up code copies (none in tosaic's objects), `zero` variables. `stack` is the maximum stack of a
    call of any of its functions, None if no bound is known."""
    text: int
    constants: int
    tables: int
    data: int
    zero: int
    stack: int | None = None


Memory = Literal["RAM", "flash", "stack"]


@dataclass(frozen=True, slots=True)
class Need:
    """An item that takes bytes of a memory."""
    what: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class FitLine:
    """A memory, its limit, and the items counted in it."""
    name: str
    memory: Memory
    limit: int
    counted: tuple[Need, ...]

    @property
    def nbytes(self) -> int:
        return sum(n.nbytes for n in self.counted)

    @property
    def over(self) -> int:
        """Bytes above the limit; 0 if it fits."""
        return max(0, self.nbytes - self.limit)

    @property
    def verdict(self) -> str:
        return f"over by {self.over:,} bytes" if self.over else "fits"

    @property
    def sum(self) -> str:
        """Counted items, in words."""
        return " + ".join(f"{n.what} {n.nbytes:,}" for n in self.counted if n.nbytes) or "nothing"

    def as_dict(self) -> dict[str, Any]:
        """{name, memory, limit, nbytes, over, counted: list of {what, nbytes}}."""
        return asdict(self) | {"nbytes": self.nbytes, "over": self.over}


@dataclass(frozen=True, slots=True)
class BoardFit:
    """A board, judged with code for its own processor, the machine that `core` names: the program's needs of its flash, its RAM
    and its stack, each against the available bytes. The stack's limit is the RAM that all else leaves. `source` is the source
    of the sizes; `note` names the missing needs. If the program cannot be compiled for the board, there are no `memories`, and
    the note gives the reason."""
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
        """Verdict in words: that the program fits, or the bytes by which it does not."""
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
    """The memory needs of a compiled function, in bytes.

    `arena` is the exact size that the planned buffers need in all workspace pools; `live_bytes` is the maximum of them live at
    once by this schedule, where bytes that may be shared count once; `lower_bound` is the minimum of every schedule of the
    model's kernels on this machine (`lowering.memory.model_bound`); `undo` is room after the arena for copies of variables, in
    programs that may fail after they have written one (in this process a call has this room also for loops that Ctrl-C ends).
    `is_proved` is True if no plan of this schedule, by the same rules of sharing, is better. `peak` is that of all workspace
    pools together. `ladder`, `object` and `boards` exist only on request: they need more plans, a compile, and a compile for
    each processor. `objective` is the first criterion among several pools.
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
        """Bytes that a run moves through the workspace pools: those of a single pool, if it held everything."""
        return sum(p.moved for p in self.workspace_pools)

    @property
    def state(self) -> int:
        """Bytes of the variables."""
        return sum(v.nbytes for v in self.variables)

    def state_in(self, pool: str) -> int:
        """Return the bytes of the variables that are pinned to a pool."""
        return sum(v.nbytes for v in self.variables if v.pool == pool)

    @property
    def workspace_pools(self) -> tuple[PoolLine, ...]:
        return tuple(p for p in self.pools if p.kind == "workspace")

    @property
    def constant_pools(self) -> tuple[PoolLine, ...]:
        return tuple(p for p in self.pools if p.kind == "constant")

    def held_by(self, pool: str) -> tuple[BufferLine, ...]:
        """Return the buffers of a pool, by offset."""
        return tuple(sorted((b for b in self.buffers if b.pool == pool), key=lambda b: (b.offset or 0, b.name)))

    def as_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers: the form of `tosaic report --json`, which `saved.read` reads.

        Keys: name, target, algorithm, seconds {stage: seconds}, format; arena, live_bytes, lower_bound, undo, constants,
        steps (numbers); inputs, outputs, variables, buffers, constant_buffers: lists of {name, dtype, shape, nbytes,
        offset, pool, kind, live [[first, last], ...], producer, last_reader, read, written, strides, scales,
        zero_points, axis, label}; kernels: list of {writes, operators, place, source, label}; timeline: list of
        {kind, kernel, rows}; peak: null or {tick, kernel, nbytes, alive [names]}; pools: list of {name, kind, nbytes,
        limit, live_bytes, alignment, peak, read, written}; ladder: list of {name, nbytes, live_bytes, explanation};
        object: null or {text, constants, tables, data, zero, stack}; in_float: list of strings; made_from: imports
        and producer of an ONNX file; narrow: list of {type, saved, conversions, instructions}; is_proved; objective;
        boards: those of `BoardFit.as_dict`. Kernels are numbers into `kernels`, ticks numbers into `timeline`; read
        and written are bytes in a run.
        """
        return asdict(self) | {"boards": [board.as_dict() for board in self.boards]}
