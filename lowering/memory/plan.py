"""The memory planner's result: pools with their sizes, and a fixed offset in a pool for every buffer. The emitter and the
runtime read a plan; it prints as text that reads back: `parse_plan(print_plan(plan)) == plan`.
"""
from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, get_args

from ...runtime.errors import Problem, Source, printable
from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..loops.program import Program
from .algorithms.lower_bound import lower_bound
from .algorithms.outcome import Outcome
from .algorithms.pool_offsets import start_of
from .buffers import BufferInfo, Kind, PoolAllocation, PoolInfo, PoolKind, Ticks, packed


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """A pool in a plan: `size_bytes` are the bytes that its buffers need, `limit_bytes` the most that it may hold (None: no
    limit), `alignment` the alignment of its first byte, `live_bytes` the most of it that is live at once. A run reads and
    writes a workspace pool; a constant pool holds data that exists before the run. Sizes count the first `pool_offset`
    bytes, which hold no buffer."""
    name: str
    size_bytes: int
    limit_bytes: int | None
    alignment: int
    live_bytes: int
    kind: PoolKind = "workspace"
    pool_offset: int = 0


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A buffer at its offset. `live` are the spans of steps in which it is in use; empty for a buffer that no step uses."""
    name: str
    pool: str
    byte_offset: int
    size_bytes: int
    alignment: int
    kind: Kind = "intermediate"
    live: tuple[Ticks, ...] = ()

    @property
    def end(self) -> int:
        """Offset of the first byte after the buffer."""
        return self.byte_offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class PlannedVariable:
    """A variable that is pinned to a pool. It is stored beside the workspace, because it outlives a run: its bytes count
    towards the pool's limit, but not towards the pool's size."""
    name: str
    pool: str
    size_bytes: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The pools and offsets of all buffers of program `name`. `live_bytes` is the most that is live at once in this schedule
    (not in every one), with bytes that may be shared counted once. `variables` are the pinned ones, the largest alignment
    first. `is_proved` means that no plan of the same steps, by the same rules of sharing, is better: none costs less, by the
    traffic through each pool, and none of the same cost has smaller pools."""
    name: str
    algorithm: str
    live_bytes: int
    pools: tuple[PlannedPool, ...]
    buffers: tuple[PlannedBuffer, ...]
    variables: tuple[PlannedVariable, ...] = ()
    is_proved: bool = False

    def __repr__(self) -> str:
        places = ", ".join(f"{p.size_bytes:,} bytes in {p.name}" for p in self.pools) or "no memory"
        return printable(f"<Plan {self.name}: {places}, {len(self.buffers)} buffers, live {self.live_bytes:,}>")

    @property
    def size_bytes(self) -> int:
        """Bytes of all workspace pools together."""
        return sum(p.size_bytes for p in self.workspace_pools)

    @property
    def workspace_pools(self) -> tuple[PlannedPool, ...]:
        """Pools that a run reads and writes."""
        return tuple(p for p in self.pools if p.kind == "workspace")

    @property
    def constant_pools(self) -> tuple[PlannedPool, ...]:
        """Pools that hold constants; none if constants are symbols of their own."""
        return tuple(p for p in self.pools if p.kind == "constant")

    @property
    def allocations(self) -> dict[str, PoolAllocation]:
        """Pool and offset of each buffer, by name."""
        return {b.name: PoolAllocation(b.pool, b.byte_offset) for b in self.buffers}

    def state_bytes(self, pool: str) -> int:
        """Return the bytes of the variables that are pinned to a pool."""
        return state_bytes(self.variables, pool)

    def pool(self, name: str) -> PlannedPool:
        """Return the pool of that name."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise Problem(f"plan {self.name} has no pool named {name}", kind="memory",
                      help=f"there are {', '.join(p.name for p in self.pools) or 'none'}")

    def to_json(self) -> dict[str, Any]:
        """Return the plan as dictionaries, lists, strings and integers, for a report."""
        return {"name": self.name, "algorithm": self.algorithm, "size_bytes": self.size_bytes,
                "live_bytes": self.live_bytes, "is_proved": self.is_proved,
                "pools": [dataclasses.asdict(p) for p in self.pools],
                "buffers": [dataclasses.asdict(b) | {"live": [list(span) for span in b.live]} for b in self.buffers],
                "variables": [dataclasses.asdict(v) for v in self.variables]}

    def __str__(self) -> str:
        return print_plan(self)


def state_bytes(variables: Iterable[PlannedVariable], pool: str) -> int:
    """Return the bytes of those variables that are pinned to the pool."""
    return packed((v.size_bytes, v.alignment) for v in variables if v.pool == pool)


def in_order(variables: Iterable[PlannedVariable]) -> tuple[PlannedVariable, ...]:
    """Return variables in their order in a pool, one after the other."""
    return tuple(sorted(variables, key=lambda v: (-v.alignment, v.name)))


def buffer_names(buffers: Iterable[Buffer]) -> dict[Buffer, str]:
    """Return the name of each buffer in a plan: its own, with a number added where an earlier buffer has the same name."""
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
    """Return the name that each buffer of a program has in a plan: temporaries, then inputs, outputs, constants."""
    return buffer_names([*program.temporaries, *program.inputs, *program.outputs, *program.constants])


def make_plan(name: str, algorithm: str, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
              outcome: Outcome, constant_pools: Sequence[PoolInfo] = (),
              bound: Callable[[Sequence[BufferInfo]], int] = lower_bound) -> Plan:
    """Return the plan for an algorithm's outcome. `bound` returns the least bytes that some buffers need; the outcome may have
    a tighter bound. The plan's own bound is that of the buffers in workspace pools."""
    allocations = outcome.allocations
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
        start = start_of(pool, buffers)
        needed = max(least(inside) + start if inside else 0, outcome.bounds.get(pool.name, 0))
        return PlannedPool(pool.name, size, pool.size_hint_bytes, alignment, needed, kinds[pool.name], start)

    def placed(b: BufferInfo) -> PlannedBuffer:
        place = allocations[b.name]
        return PlannedBuffer(b.name, place.pool, place.byte_offset, b.size_bytes, b.alignment, b.kind, b.live or ())

    found, workspace = tuple(map(planned, (*pools, *constant_pools))), [b for b in buffers if b.kind != "constant"]
    shared_bound = next((p.live_bytes for p in found if held[p.name] == workspace), None)  # all are in one pool
    return Plan(name, algorithm, least(workspace) if shared_bound is None else shared_bound, found, tuple(map(placed, buffers)),
                is_proved=outcome.proved)


POOL = ("pool", "kind", "bytes", "limit", "alignment", "live")
POOL_WITH_OFFSET = (*POOL, "offset")
"""Columns of the table of pools, if a pool has an offset."""
BUFFER = ("buffer", "pool", "offset", "bytes", "alignment", "kind", "live")
VARIABLE = ("variable", "pool", "bytes", "alignment")
PROOFS: list[list[str]] = [[], ["not", "proved"]]
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
PLAIN = re.compile(r"[^\s\"\\,\x00-\x1f\x7f-\x9f]+")


def print_plan(plan: Plan) -> str:
    """Return the plan as text: a line about the whole, a table of pools, one of buffers, and one of pinned variables, if any.
    """
    head = (f"plan {name(plan.name)} algorithm {name(plan.algorithm)} bytes {plan.size_bytes} "
            f"live {plan.live_bytes}{'' if plan.is_proved else ' not proved'}")
    have_offsets = any(p.pool_offset for p in plan.pools)
    pools = [(name(p.name), p.kind, str(p.size_bytes), "-" if p.limit_bytes is None else str(p.limit_bytes), str(p.alignment),
              str(p.live_bytes), *([str(p.pool_offset)] if have_offsets else [])) for p in plan.pools]
    buffers = [(name(b.name), name(b.pool), str(b.byte_offset), str(b.size_bytes), str(b.alignment), b.kind,
                ",".join(f"{first}-{last}" for first, last in b.live) or "-") for b in plan.buffers]
    variables = [(name(v.name), name(v.pool), str(v.size_bytes), str(v.alignment)) for v in plan.variables]
    last = ["", *table(VARIABLE, variables)] if variables else []
    heading = POOL_WITH_OFFSET if have_offsets else POOL
    return "\n".join([head, "", *table(heading, pools), "", *table(BUFFER, buffers), *last, ""])


def name(text: str) -> str:
    """Return a name as it is, or in quotes if it would not read back."""
    return text if PLAIN.fullmatch(text) else json.dumps(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; columns of numbers are right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    numeric = [bool(rows) and all(row[i].isdigit() or row[i] == "-" for row in rows) for i in range(len(head))]
    return ["  ".join(cell.rjust(width) if right else cell.ljust(width)
                      for cell, width, right in zip(row, widths, numeric)).rstrip() for row in (head, *rows)]


def parse_plan(text: str, source: str = "plan") -> Plan:
    """Read a plan that `print_plan` wrote, but do not verify it. Raises a Problem with the line for any other text."""
    return PlanReader(Source(source, text)).plan()


class PlanReader:
    """A reader of the lines of a text, as words."""

    def __init__(self, source: Source) -> None:
        assert source.text is not None
        self.source = source
        self.lines = [(number, words) for number, line in enumerate(source.text.split("\n"), 1)
                      if (words := WORD.findall(line))]
        self.at = 0

    def plan(self) -> Plan:
        match self.next("a line that starts with plan"):
            case ["plan", title, "algorithm", algorithm, "bytes", size, "live", bound, *proof] if proof in PROOFS:
                pass
            case _:
                raise self.problem("expected: plan NAME algorithm NAME bytes N live N, and perhaps: not proved")
        head = self.text(title), self.text(algorithm), self.number(bound)
        total = self.number(size)
        columns = POOL_WITH_OFFSET if self.at < len(self.lines) and self.lines[self.at][1][-1] == "offset" else POOL
        self.heading(columns)
        pools = tuple(self.pool(self.next("a pool"), columns) for _ in range(self.rows(BUFFER)))
        self.heading(BUFFER)
        buffers = tuple(self.buffer(self.next("a buffer")) for _ in range(self.rows(VARIABLE)))
        plan = Plan(*head, pools, buffers, tuple(self.variables()), is_proved=not proof)
        if plan.size_bytes != total:
            self.at = 1
            raise self.problem(f"the plan has {total} bytes, but its pools have {plan.size_bytes}")
        return plan

    def variables(self) -> Iterator[PlannedVariable]:
        """Yield the pinned variables, whose table may be missing."""
        if self.at < len(self.lines):
            self.heading(VARIABLE)
        while self.at < len(self.lines):
            title, pool, size, alignment = self.cells(self.next("a variable"), VARIABLE)
            yield PlannedVariable(self.text(title), self.text(pool), self.number(size), self.number(alignment))

    def pool(self, row: list[str], columns: tuple[str, ...]) -> PlannedPool:
        title, kind, size, limit, alignment, bound, *offset = self.cells(row, columns)
        if kind not in get_args(PoolKind):
            raise self.problem(f"{kind} is no kind of pool: {', '.join(get_args(PoolKind))}")
        return PlannedPool(self.text(title), self.number(size), None if limit == "-" else self.number(limit),
                           self.number(alignment), self.number(bound), kind,  # type: ignore[arg-type]
                           self.number(offset[0]) if offset else 0)

    def buffer(self, row: list[str]) -> PlannedBuffer:
        title, pool, offset, size, alignment, kind, live = self.cells(row, BUFFER)
        if kind not in get_args(Kind):
            raise self.problem(f"{kind} is no kind of buffer: {', '.join(get_args(Kind))}")
        return PlannedBuffer(self.text(title), self.text(pool), self.number(offset), self.number(size),
                             self.number(alignment), kind, self.spans(live))  # type: ignore[arg-type]

    def spans(self, live: str) -> tuple[Ticks, ...]:
        if live == "-":
            return ()
        found = [re.fullmatch(r"(\d+)-(\d+)", span, re.ASCII) for span in live.split(",")]
        if not all(found):
            raise self.problem(f"expected spans of steps such as 0-3,5-5, found {live}")
        return tuple((int(m[1]), int(m[2])) for m in found if m)

    def next(self, wanted: str) -> list[str]:
        if self.at == len(self.lines):
            raise Problem(f"the text ends where {wanted} should follow", kind="syntax")
        self.at += 1
        return self.lines[self.at - 1][1]

    def heading(self, columns: tuple[str, ...]) -> None:
        if self.next(f"the heading {columns[0]}") != list(columns):
            raise self.problem(f"expected the heading {' '.join(columns)}")

    def rows(self, until: tuple[str, ...]) -> int:
        """Return the number of lines before that heading, or before the end."""
        rest = [words for _, words in self.lines[self.at:]]
        return rest.index(list(until)) if list(until) in rest else len(rest)

    def cells(self, row: list[str], columns: tuple[str, ...]) -> list[str]:
        if len(row) != len(columns):
            raise self.problem(f"expected {len(columns)} columns ({' '.join(columns)}), found {len(row)}")
        return row

    def number(self, word: str) -> int:
        if not re.fullmatch(r"\d{1,20}", word, re.ASCII):
            raise self.problem(f"expected a number, found {word}")
        return int(word)

    def text(self, word: str) -> str:
        if not word.startswith('"'):
            return word
        try:
            return str(json.loads(word))
        except ValueError:
            raise self.problem(f"the quoted name {word} is not a JSON string") from None

    def problem(self, message: str) -> Problem:
        """Return a problem at the line read last."""
        assert self.source.text is not None
        number = self.lines[self.at - 1][0]
        width = len(self.source.text.split("\n")[number - 1])
        return Problem(message, self.source.position(self.offset(number), width), kind="syntax")

    def offset(self, number: int) -> int:
        assert self.source.text is not None
        return sum(len(line) + 1 for line in self.source.text.split("\n")[:number - 1])
