"""The verifier of plans, which shares no code with the planner. It checks an algorithm's answer against the conflicts that the
algorithm was given, and a whole plan against the program, by replaying the steps (`replay`). It runs on every compilation.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ....runtime.errors import Problem
from ...loops.program import Program
from ..buffers import BufferInfo, PoolAllocation, PoolInfo
from ..plan import Plan, PlannedBuffer, PlannedPool, names_of
from .replay import Replay

SHOWN = 5
"""Maximum number of faults that a message lists."""

WRONG = "the memory plan is wrong"


def says_wrong(problem: Problem) -> bool:
    """True if the problem is one of this file's, and not of memories that are too small."""
    return problem.kind == "memory" and problem.message.startswith(WRONG)


def require_sound(faults: Sequence[str]) -> None:
    """Raise a Problem that lists the first faults, if there are any."""
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise Problem(f"{WRONG}: {'; '.join(faults[:SHOWN])}{more}", kind="memory",
                      help="this is a fault of the planner's algorithm, not of the model")


# ---- an algorithm's answer -------------------------------------------------------------------------------------------
def placement_faults(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
                     allocations: Mapping[str, PoolAllocation]) -> Iterator[str]:
    """Yield the faults of each buffer's own pool and offset."""
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
    if place.byte_offset < pool.pool_offset:
        yield f"{at} begins before byte {pool.pool_offset}, where the pool does"
    if place.byte_offset % buffer.alignment or (pool.alignment or buffer.alignment) % buffer.alignment:
        yield f"{at} is not aligned to {buffer.alignment} bytes"
    if pool.size_hint_bytes is not None and place.byte_offset + buffer.size_bytes > pool.size_hint_bytes:
        yield f"{at} ends at {place.byte_offset + buffer.size_bytes}, behind the pool's {pool.size_hint_bytes} bytes"


def conflict_faults(buffers: Sequence[BufferInfo], allocations: Mapping[str, PoolAllocation]) -> Iterator[str]:
    """Yield the pairs of buffers in conflict that share a byte; conflicts count both ways, however they are given."""
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


def lifetime_faults(buffers: Sequence[BufferInfo], allocations: Mapping[str, PoolAllocation]) -> Iterator[str]:
    """Yield the buffers that are live at one tick and share a byte: a sweep over time tracks the taken bytes of each pool."""
    events = sorted((first, last, b.name, b.size_bytes) for b in buffers if b.size_bytes and b.name in allocations
                    for first, last in b.live or ())
    taken: dict[str, list[Taken]] = {}
    for first, last, name, nbytes in events:
        place = allocations[name]
        start, end = place.byte_offset, place.byte_offset + nbytes
        held = [t for t in taken.get(place.pool, ()) if t.last >= first]
        for other in held:
            if other.name != name and start < other.end and other.start < end:
                yield f"{min(name, other.name)} and {max(name, other.name)} share bytes, but are live at tick {first}"
        taken[place.pool] = [*held, Taken(start, end, last, name)]


class Taken(NamedTuple):
    """Bytes [start, end) of a pool that a buffer takes until its tick `last`."""
    start: int
    end: int
    last: int
    name: str


# ---- a plan, against its program -------------------------------------------------------------------------------------
def verify(plan: Plan, program: Program) -> None:
    """Raise a Problem unless `plan` gives every buffer of `program` that needs one an offset, and running the program
    never finds bytes overwritten that are still to be read."""
    require_sound(plan_faults(plan, program))


def plan_faults(plan: Plan, program: Program) -> list[str]:
    """Return the faults of `plan`, each once."""
    places = {b.name: b for b in plan.buffers}
    names, variables = names_of(program), {v.buffer.name: v.buffer.nbytes for v in program.variables}
    faults = [*layout_faults(plan), *(f"{names[b]} has no place" for b in program.temporaries if names[b] not in places)]
    faults += [f"{v.name} is no variable of {v.size_bytes} bytes" for v in plan.variables
               if variables.get(v.name) != v.size_bytes]
    placed = {buffer: places[name] for buffer, name in names.items() if name in places}
    for buffer, place in placed.items():
        if place.size_bytes < buffer.nbytes:
            faults.append(f"{place.name} has {place.size_bytes} bytes, but needs {buffer.nbytes}")
    replay = Replay(program, placed)
    replay.whole_run()
    return list(dict.fromkeys(faults + replay.faults))


def layout_faults(plan: Plan) -> Iterator[str]:
    """Yield the faults of pools and offsets by themselves."""
    pools = {p.name: p for p in plan.pools}
    if len(pools) < len(plan.pools) or len({b.name for b in plan.buffers}) < len(plan.buffers):
        yield "two pools or two buffers have the same name"
    for pool in plan.pools:
        size = pool.size_bytes + sum(v.size_bytes for v in plan.variables if v.pool == pool.name)
        if pool.limit_bytes is not None and size > pool.limit_bytes:
            yield f"pool {pool.name} has {size} bytes, but may have {pool.limit_bytes}"
    for variable in plan.variables:
        if variable.pool not in pools or pools[variable.pool].kind != "workspace":
            yield f"variable {variable.name} lies in {variable.pool}, which is no workspace pool"
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
    if buffer.byte_offset < pool.pool_offset or buffer.byte_offset + buffer.size_bytes > pool.size_bytes:
        yield f"{buffer.name} lies outside of bytes {pool.pool_offset} to {pool.size_bytes} of {pool.name}"
