"""The memories of a model in its C interface: the pools of the plans of all its entry functions as one list, with the location
of every planned buffer in them, and the bytes of the constant pools.

Entry functions run one after the other, and a workspace means nothing between runs, so a workspace pool is as large as the
function that needs most of it. A constant pool holds the constants that all of them read.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.program import Program
from ...memory.buffers import PoolKind, aligned
from ...memory.plan import Plan, PlannedPool, PlannedVariable, in_order, names_of, state_bytes
from ..driver.variable_rollback import rollback_of
from .c_names import distinct, macro
from .data_symbols import bytes_of

ROLLBACK_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class CPool:
    """A memory of a model. `title` is the user's name for it, `name` its name in C, `limit` its maximum size in bytes; `data`
    holds the bytes of a constant pool, `state` the number of bytes of variables pinned to the pool, beside its own."""
    title: str
    name: str
    kind: PoolKind
    nbytes: int
    alignment: int
    limit: int | None = None
    data: bytes = b""
    state: int = 0

    @property
    def stem(self) -> str:
        """The suffix of the pool's names; the default pool, when the user names none, is just the workspace."""
        return "workspace" if (self.title, self.kind) == ("workspace", "workspace") else f"{self.name}_{self.kind}_pool"

    @property
    def macro(self) -> str:
        return macro(self.stem)

    @property
    def checksum(self) -> int:
        """CRC-32 of the data."""
        return zlib.crc32(self.data)


@dataclass(frozen=True, slots=True)
class At:
    """An offset in a pool; `number` is the pool's index in the model."""
    number: int
    offset: int


@dataclass(frozen=True, slots=True)
class Memories:
    """The pools of a model in the user's order, workspace pools first. `places[i]` locates the buffers of entry function i,
    `rollbacks[i]` its copies of variables, if it needs them."""
    pools: tuple[CPool, ...]
    places: tuple[Mapping[Buffer, At], ...]
    rollbacks: tuple[At | None, ...]

    def of_kind(self, kind: PoolKind) -> tuple[CPool, ...]:
        return tuple(p for p in self.pools if p.kind == kind)


@dataclass(slots=True)
class Growing:
    """A pool while entry functions are added. `known` maps the constants that it holds to their offsets."""
    planned: PlannedPool
    state: int = 0
    nbytes: int = 0
    alignment: int = 1
    data: bytearray = field(default_factory=bytearray)
    known: dict[bytes, int] = field(default_factory=dict)

    def reserve(self, nbytes: int, alignment: int) -> None:
        """Grow the pool to that size; raise a Problem if it exceeds the limit."""
        limit = self.planned.limit_bytes
        if limit is not None and nbytes + self.state > limit:
            raise Problem(f"pool {self.planned.name} may hold {limit} bytes, and the entry functions of the model need "
                          f"{nbytes + self.state} together", kind="memory",
                          help="make the pool larger, or compile the entry functions separately")
        self.nbytes, self.alignment = max(self.nbytes, nbytes), max(self.alignment, alignment)

    def put(self, data: bytes, offset: int) -> None:
        """Write constant bytes at that offset."""
        self.data.extend(bytes(max(0, offset + len(data) - len(self.data))))
        self.data[offset:offset + len(data)] = data
        self.known.setdefault(data, offset)


def memories(programs: Sequence[tuple[Program, Plan]]) -> Memories:
    """Return the memories of the entry functions of one model. Raise a Problem if names of pools clash in C, or pools are too
    small for all functions together."""
    pinned = pinned_variables([plan for _, plan in programs])
    growing = {p.name: Growing(p, state_bytes(pinned, p.name)) for kind in ("workspace", "constant")
               for _, plan in programs for p in plan.pools if p.kind == kind}
    numbers = {name: number for number, name in enumerate(growing)}
    places = []
    for first, (program, plan) in zip([True] + [False] * len(programs), programs):
        add_workspaces(growing, plan)
        places.append(located(growing, numbers, program, plan, first))
    rollbacks = tuple(room_for_rollback(growing, numbers, program, plan) for program, plan in programs)
    return Memories(tuple(finished(growing.values())), tuple(places), rollbacks)


def pinned_variables(plans: Iterable[Plan]) -> tuple[PlannedVariable, ...]:
    """Return the variables of a model that are pinned to pools, each once."""
    return in_order({v.name: v for plan in plans for v in plan.variables}.values())


def add_workspaces(growing: Mapping[str, Growing], plan: Plan) -> None:
    for pool in plan.workspace_pools:
        growing[pool.name].reserve(pool.size_bytes, pool.alignment)


def located(growing: Mapping[str, Growing], numbers: Mapping[str, int], program: Program, plan: Plan,
            first: bool) -> dict[Buffer, At]:
    """Return the locations of a program's buffers. Constants of the `first` program stay as planned; those of others follow
    them, equal ones once."""
    planned, found = {b.name: b for b in plan.buffers}, {}
    for buffer, name in names_of(program).items():
        if name not in planned:
            continue
        place, pool = planned[name], growing[planned[name].pool]
        offset = place.byte_offset
        if place.kind == "constant":
            assert buffer.data is not None, f"constant {name} has no data"
            data = bytes_of(buffer.data)
            if not first:
                known = pool.known.get(data)
                offset = aligned(len(pool.data), place.alignment) if known is None or known % place.alignment else known
            pool.put(data, offset)
            pool.reserve(len(pool.data), max(pool.planned.alignment, place.alignment))
        found[buffer] = At(numbers[place.pool], offset)
    return found


def room_for_rollback(growing: Mapping[str, Growing], numbers: Mapping[str, int], program: Program, plan: Plan) -> At | None:
    """Return room for copies of variables, after the buffers of the first suitable workspace pool; None if none is needed."""
    nbytes = rollback_of(program).nbytes
    if not nbytes:
        return None
    for pool in sorted(plan.workspace_pools, key=lambda p: p.size_bytes == 0):  # prefers a pool that is used anyway
        offset = aligned(pool.size_bytes, ROLLBACK_ALIGNMENT)
        if pool.limit_bytes is None or offset + nbytes + growing[pool.name].state <= pool.limit_bytes:
            growing[pool.name].reserve(offset + nbytes, max(pool.alignment, ROLLBACK_ALIGNMENT))
            return At(numbers[pool.name], offset)
    raise Problem(f"no workspace pool has room for {nbytes} bytes of copies of variables, which {program.name} needs because "
                  "a run that fails must leave them as they were", kind="memory", help="make a workspace pool larger")


def finished(growing: Iterable[Growing]) -> Iterable[CPool]:
    """Yield the pools, with their names in C."""
    pools = list(growing)
    for kind in ("workspace", "constant"):
        own = [g for g in pools if g.planned.kind == kind]
        names = distinct([g.planned.name for g in own], ("size",))
        for g in own:
            p = g.planned
            yield CPool(p.name, names[p.name], p.kind, g.nbytes, g.alignment, p.limit_bytes, bytes(g.data), g.state)

