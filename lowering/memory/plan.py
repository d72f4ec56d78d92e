"""What the memory planner found: pools with their sizes, and a fixed offset in one of them for every buffer. The
emitter and the runtime read it; it prints as text that reads back (`plan_text`).
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..loops.program import Program
from .algorithms.lower_bound import lower_bound
from .buffers import BufferInfo, Kind, PoolAllocation, PoolInfo, PoolKind, Ticks


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """A pool as a plan uses it: `size_bytes` is what the buffers in it need, `limit_bytes` what it may hold (None:
    any), `alignment` what its first byte must be aligned to, `lower_bound` the least size for the same buffers. A run
    reads and writes a workspace pool; a constant pool holds data that is there before."""
    name: str
    size_bytes: int
    limit_bytes: int | None
    alignment: int
    lower_bound: int
    kind: PoolKind = "workspace"


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A buffer in its place. `live` is when it is in use, in spans of steps; empty for one that no step uses."""
    name: str
    pool: str
    byte_offset: int
    size_bytes: int
    alignment: int
    kind: Kind = "intermediate"
    live: tuple[Ticks, ...] = ()

    @property
    def end(self) -> int:
        """Offset of the first byte behind it."""
        return self.byte_offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every buffer of program `name` lies. `lower_bound` is the least size of one pool that holds them all."""
    name: str
    algorithm: str
    lower_bound: int
    pools: tuple[PlannedPool, ...]
    buffers: tuple[PlannedBuffer, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all workspace pools together."""
        return sum(p.size_bytes for p in self.workspace_pools)

    @property
    def workspace_pools(self) -> tuple[PlannedPool, ...]:
        """The memories that a run reads and writes."""
        return tuple(p for p in self.pools if p.kind == "workspace")

    @property
    def constant_pools(self) -> tuple[PlannedPool, ...]:
        """The memories that hold constants; none where constants are symbols of their own."""
        return tuple(p for p in self.pools if p.kind == "constant")

    @property
    def allocations(self) -> dict[str, PoolAllocation]:
        """The place of each buffer, by name."""
        return {b.name: PoolAllocation(b.pool, b.byte_offset) for b in self.buffers}

    def pool(self, name: str) -> PlannedPool:
        """The pool of that name."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise Problem(f"plan {self.name} has no pool named {name}", kind="memory",
                      help=f"there are {', '.join(p.name for p in self.pools) or 'none'}")

    def to_json(self) -> dict[str, Any]:
        """The plan as dictionaries, lists, strings and integers, for a report."""
        return {"name": self.name, "algorithm": self.algorithm, "size_bytes": self.size_bytes,
                "lower_bound": self.lower_bound, "pools": [dataclasses.asdict(p) for p in self.pools],
                "buffers": [dataclasses.asdict(b) | {"live": [list(span) for span in b.live]} for b in self.buffers]}

    def __str__(self) -> str:
        from .plan_text import print_plan
        return print_plan(self)


def buffer_names(buffers: Iterable[Buffer]) -> dict[Buffer, str]:
    """The name of each buffer in a plan: its own, with a number added where an earlier one has the same."""
    found: dict[Buffer, str] = {}
    counts: dict[str, int] = {}
    taken: set[str] = set()
    for buffer in buffers:
        if buffer in found:
            continue
        name = buffer.name
        while name in taken:
            counts[buffer.name] = counts.get(buffer.name, 1) + 1
            name = f"{buffer.name}.{counts[buffer.name]}"
        taken.add(name)
        found[buffer] = name
    return found


def names_of(program: Program) -> dict[Buffer, str]:
    """The name that each buffer of a program has in a plan: temporaries, then inputs, outputs, constants."""
    return buffer_names([*program.temporaries, *program.inputs, *program.outputs, *program.constants])


def make_plan(name: str, algorithm: str, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
              allocations: Mapping[str, PoolAllocation], constant_pools: Sequence[PoolInfo] = (),
              bound: Callable[[Sequence[BufferInfo]], int] = lower_bound) -> Plan:
    """The plan that an algorithm's answer amounts to; `bound` is what some buffers need at least. The plan's own is that of
    what lies in workspace pools."""
    kinds: dict[str, PoolKind] = {**dict.fromkeys((p.name for p in pools), "workspace"),
                                  **dict.fromkeys((p.name for p in constant_pools), "constant")}
    held: dict[str, list[BufferInfo]] = {name: [] for name in kinds}
    for b in buffers:
        held[allocations[b.name].pool].append(b)

    def least(some: Sequence[BufferInfo]) -> int:
        return lower_bound(some) if any(b.kind == "constant" for b in some) else bound(some)

    def planned(pool: PoolInfo) -> PlannedPool:
        inside = held[pool.name]
        size = max((allocations[b.name].byte_offset + b.size_bytes for b in inside), default=0)
        alignment = max([pool.alignment or 1, *(b.alignment for b in inside)])
        return PlannedPool(pool.name, size, pool.size_hint_bytes, alignment, least(inside), kinds[pool.name])

    def placed(b: BufferInfo) -> PlannedBuffer:
        place = allocations[b.name]
        return PlannedBuffer(b.name, place.pool, place.byte_offset, b.size_bytes, b.alignment, b.kind, b.live or ())

    found, workspace = tuple(map(planned, (*pools, *constant_pools))), [b for b in buffers if b.kind != "constant"]
    together = next((p.lower_bound for p in found if held[p.name] == workspace), None)  # they lie in one pool
    return Plan(name, algorithm, least(workspace) if together is None else together, found, tuple(map(placed, buffers)))
