"""Whether a plan is right, found out without the code that made it. An algorithm's answer is held against the conflicts
that it was given; a whole plan is held against the program, by replaying the steps and noting whose contents the bytes
hold. Runs on every compilation.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..fuse.kernel import Branch, CheckWritten, Compute, Loop, MarkWritten, Step
from ..loops.ir import buffers_read, buffers_written
from ..loops.program import Program
from .buffers import BufferInfo, PoolAllocation, PoolInfo
from .plan import Plan, PlannedBuffer, PlannedPool, names_of

SHOWN = 5
"""How many faults a message lists."""


def require_sound(faults: Sequence[str]) -> None:
    """Raise a Problem that lists the first faults, if there are any."""
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise Problem(f"the memory plan is wrong: {'; '.join(faults[:SHOWN])}{more}", kind="memory",
                      help="this is a fault of the planner's algorithm, not of the model")


# ---- an algorithm's answer -------------------------------------------------------------------------------------------
def placement_faults(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
                     allocations: Mapping[str, PoolAllocation]) -> Iterator[str]:
    """What is wrong with the place of each buffer by itself."""
    known = {p.name: p for p in pools}
    for name in sorted(allocations.keys() - {b.name for b in buffers}):
        yield f"{name} has a place but is no buffer"
    for b in buffers:
        place = allocations.get(b.name)
        if place is None:
            yield f"{b.name} has no place"
        elif place.pool not in known:
            yield f"{b.name} lies in {place.pool}, which is no pool"
        else:
            yield from place_faults(b, place, known[place.pool])


def place_faults(buffer: BufferInfo, place: PoolAllocation, pool: PoolInfo) -> Iterator[str]:
    at = f"{buffer.name} at offset {place.byte_offset} of {pool.name}"
    if buffer.pool_candidates and pool.name not in buffer.pool_candidates:
        yield f"{at} may only lie in {', '.join(buffer.pool_candidates)}"
    if place.byte_offset < 0:
        yield f"{at} begins before the pool"
    if place.byte_offset % buffer.alignment or (pool.alignment or buffer.alignment) % buffer.alignment:
        yield f"{at} is not aligned to {buffer.alignment} bytes"
    if pool.size_hint_bytes is not None and place.byte_offset + buffer.size_bytes > pool.size_hint_bytes:
        yield f"{at} ends at {place.byte_offset + buffer.size_bytes}, behind the pool's {pool.size_hint_bytes} bytes"


def conflict_faults(buffers: Sequence[BufferInfo], allocations: Mapping[str, PoolAllocation]) -> Iterator[str]:
    """Which buffers in conflict share a byte; conflicts count both ways, however they are given."""
    spans = {b.name: (place.pool, place.byte_offset, place.byte_offset + b.size_bytes)
             for b in buffers if (place := allocations.get(b.name)) is not None and b.size_bytes}
    clashes = set()
    for b in buffers:
        if b.name in spans:
            pool, start, end = spans[b.name]
            for other in b.conflicts:
                other_pool, other_start, other_end = spans.get(other, ("", 0, 0))
                if start < other_end and other_start < end and pool == other_pool and other != b.name:
                    clashes.add((min(b.name, other), max(b.name, other)))
    for one, other in sorted(clashes):
        yield f"{one} and {other} share bytes, but conflict"


# ---- a plan, against its program -------------------------------------------------------------------------------------
def verify(plan: Plan, program: Program) -> None:
    """Raise a Problem unless `plan` gives every buffer of `program` that needs one a place, and running the program
    never finds the bytes of a buffer overwritten that are still to be read."""
    require_sound(plan_faults(plan, program))


def plan_faults(plan: Plan, program: Program) -> list[str]:
    """What is wrong with `plan`, each fault once."""
    places = {b.name: b for b in plan.buffers}
    names = names_of(program)
    faults = [*layout_faults(plan), *(f"{names[b]} has no place" for b in program.temporaries if names[b] not in places)]
    placed = {buffer: places[name] for buffer, name in names.items() if name in places}
    for buffer, place in placed.items():
        if place.size_bytes < buffer.nbytes:
            faults.append(f"{place.name} has {place.size_bytes} bytes, but needs {buffer.nbytes}")
    replay = Replay(program, placed)
    replay.whole_run()
    return list(dict.fromkeys(faults + replay.faults))


def layout_faults(plan: Plan) -> Iterator[str]:
    """What is wrong with pools and places by themselves."""
    pools = {p.name: p for p in plan.pools}
    if len(pools) < len(plan.pools) or len({b.name for b in plan.buffers}) < len(plan.buffers):
        yield "two pools or two buffers have the same name"
    for pool in plan.pools:
        if pool.limit_bytes is not None and pool.size_bytes > pool.limit_bytes:
            yield f"pool {pool.name} has {pool.size_bytes} bytes, but may have {pool.limit_bytes}"
    for buffer in plan.buffers:
        if buffer.pool not in pools:
            yield f"{buffer.name} lies in {buffer.pool}, which is no pool"
        else:
            yield from misplaced(buffer, pools[buffer.pool])


def misplaced(buffer: PlannedBuffer, pool: PlannedPool) -> Iterator[str]:
    if buffer.byte_offset % buffer.alignment or pool.alignment % buffer.alignment:
        yield f"{buffer.name} at offset {buffer.byte_offset} of {pool.name} is not aligned to {buffer.alignment} bytes"
    if (pool.kind == "constant") is not (buffer.kind == "constant"):
        yield f"{buffer.name} is {buffer.kind}, but {pool.name} a pool of kind {pool.kind}"
    if buffer.byte_offset < 0 or buffer.byte_offset + buffer.size_bytes > pool.size_bytes:
        yield f"{buffer.name} lies outside the {pool.size_bytes} bytes of {pool.name}"


def overlap(one: PlannedBuffer, other: PlannedBuffer) -> bool:
    """Whether they share a byte."""
    return (one.pool == other.pool and max(one.byte_offset, other.byte_offset)
            < min(one.byte_offset + one.size_bytes, other.byte_offset + other.size_bytes))


@dataclass(slots=True)
class Contents:
    """What the pools hold at one point of a run: `intact` buffers whose contents are there, and the ones whose contents
    are gone, with who overwrote them."""
    intact: set[Buffer] = field(default_factory=set)
    gone: dict[Buffer, str] = field(default_factory=dict)

    def copy(self) -> Contents:
        return Contents(set(self.intact), dict(self.gone))

    def meet(self, other: Contents) -> Contents:
        """What is certain when either may be the case."""
        gone = other.gone | self.gone
        return Contents((self.intact | other.intact) - gone.keys(), gone)


class Replay:
    """Runs the steps on contents instead of numbers: both parts of each branch, each loop until nothing changes."""

    def __init__(self, program: Program, placed: Mapping[Buffer, PlannedBuffer]) -> None:
        self.program = program
        self.placed = placed
        self.reads = [[b for b in f.params if b in buffers_read(f)] for f in program.functions]
        self.writes = [[b for b in f.params if b in buffers_written(f)] for f in program.functions]
        self.scratch = [list(f.scratch) for f in program.functions]
        self.origins = [f.name for f in program.functions]
        self.now = Contents()
        self.faults: list[str] = []

    def whole_run(self) -> None:
        """The caller gives inputs, and finds outputs; constants are there before and after."""
        given = [b for b in (*self.program.constants, *self.program.inputs) if b in self.placed]
        for buffer in given:
            self.write(buffer)
        if len(self.now.intact) < len(given):
            self.faults.append("inputs or constants share bytes")
        self.run(self.program.steps)
        for buffer in (*self.program.outputs, *self.program.constants):
            if buffer in self.placed:
                self.read(buffer, "the caller")

    def run(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Compute(kernel, rows):
                    self.compute(kernel, continues=rows is not None and rows[0] > 0)
                case Branch(condition, then, otherwise):
                    self.read(condition, "a branch")
                    before = self.now.copy()
                    self.run(then)
                    after, self.now = self.now, before
                    self.run(otherwise)
                    self.now = self.now.meet(after)
                case Loop():
                    self.loop(step)
                case CheckWritten() | MarkWritten():
                    pass

    def loop(self, loop: Loop) -> None:
        """Each turn starts with what is certain after any number of turns; that only shrinks, so it ends."""
        while True:
            start = self.now.copy()
            self.run(loop.test)
            self.read(loop.condition, "a loop")
            end = self.now.copy()
            self.run(loop.body)
            met = start.meet(self.now)
            if met.gone.keys() == start.gone.keys() and met.intact == start.intact:
                self.now = end
                return
            self.now = met

    def compute(self, kernel: int, continues: bool) -> None:
        """A kernel needs what it reads, and what it goes on writing; what it writes from the start is new."""
        name, writes, scratch = self.origins[kernel], self.writes[kernel], self.scratch[kernel]
        for buffer in (*self.reads[kernel], *(writes if continues else ())):
            self.read(buffer, name)
        used = list(dict.fromkeys(b for b in (*self.reads[kernel], *writes, *scratch) if b in self.placed))
        for i, one in enumerate(used):
            for other in used[:i]:
                if overlap(self.placed[one], self.placed[other]):
                    pair = f"{self.placed[other].name} and {self.placed[one].name}"
                    self.faults.append(f"{name} uses {pair} at once, which share bytes")
        for buffer in (*writes, *scratch):
            self.write(buffer)

    def read(self, buffer: Buffer, reader: str) -> None:
        if buffer in self.now.gone:
            self.faults.append(f"{reader} reads {self.placed[buffer].name}, whose bytes {self.now.gone[buffer]} has "
                               "overwritten")

    def write(self, buffer: Buffer) -> None:
        place = self.placed.get(buffer)
        if place is None:
            return
        lost = [b for b in self.now.intact if b is not buffer and overlap(place, self.placed[b])]
        self.now.gone.update(dict.fromkeys(lost, place.name))
        self.now.gone.pop(buffer, None)
        self.now.intact.difference_update(lost)
        self.now.intact.add(buffer)
