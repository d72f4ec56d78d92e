"""The needs of a program in each kind of memory, compared with limits that a user or a board gives.

Every need is counted once. A limit with the name of a pool of the plan counts that pool. The first limit for RAM also counts
all that is written and in no pool so named (other workspace pools, variables, their copies, the caller's inputs and outputs
unless they are in the workspace, or elsewhere by `io_elsewhere`); the first for flash all that is only read (other constants,
code, tables, initial values of variables).
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....runtime.errors import Problem
from .figures import Figures, FitLine, Memory, Need, PoolLine
from .text import table

MEMORIES: dict[str, Memory] = {
    **dict.fromkeys(("ram", "sram", "dram", "psram", "sdram", "dtcm", "tcm", "ccm", "workspace", "data"), "RAM"),
    **dict.fromkeys(("flash", "rom", "nor", "qspi", "xip", "mram", "constants", "code"), "flash")}
"""Names that tell the kind of a memory, also with a number after them (`sram1`)."""

SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

EXAMPLE = "write for example --fit sram:256K,flash:1M; K, M and G are powers of 1024"

UNCOUNTED = "not counted: {stack}, the program around it"
IO = ("input", "output")
"""Kinds of buffers that the caller has, unless they are in the workspace."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A memory and its size in bytes."""
    name: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Fit:
    """The verdict for each memory, and notes on needs that it leaves out."""
    lines: tuple[FitLine, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return not any(line.over for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        """{fits, notes, memories: list of {name, memory, limit, nbytes, over, counted: list of {what, nbytes}}}."""
        return {"fits": self.fits, "notes": list(self.notes), "memories": [x.as_dict() for x in self.lines]}

    def __str__(self) -> str:
        rows = [(x.name, f"{x.nbytes:,}", f"{x.limit:,}", x.verdict, x.sum) for x in self.lines]
        return "\n".join([*table(("memory", "needs", "has", "", "counted"), rows), *(f"  {note}" for note in self.notes)])


def parse_limits(text: str) -> tuple[Limit, ...]:
    """Return the limits of `sram:256K,flash:1M`. Raise a Problem for any other text."""
    limits = tuple(parse_limit(part) for part in text.split(","))
    names = [x.name for x in limits]
    for name in names:
        if names.count(name) > 1:
            raise Problem(f"--fit names {name} twice", kind="option", help="give each memory one limit")
    return limits


def parse_limit(text: str) -> Limit:
    found = re.fullmatch(r"\s*([^:\s]+)\s*:\s*(\d{1,18})\s*([kmgKMG]?)(?:i?[bB])?\s*", text, re.ASCII)
    if not found:
        raise Problem(f"{text.strip() or 'nothing'} is no memory and size", kind="option", help=EXAMPLE)
    return Limit(found[1], int(found[2]) * SUFFIXES[found[3].lower()])


def fit(report: Figures, limits: Sequence[Limit], io_elsewhere: bool = False) -> Fit:
    """Return the needs of the program in each of these memories, without the caller's inputs and outputs if these are elsewhere
    (`io_elsewhere`). Raises a Problem for an unknown name: it is no pool, no kind of memory, and not one of the first two."""
    memories = [memory_of(report, limit, i) for i, limit in enumerate(limits)]
    named = {limit.name for limit in limits}
    ram = (*written(report, named, io_elsewhere), *stack(report, memories))
    lines, rest = [], {"RAM": ram, "flash": tuple(read_only(report, named))}
    for limit, memory in zip(limits, memories):
        own = pool_named(report, limit.name)
        counted = (*(in_pool(report, own) if own else ()), *rest[memory])
        rest[memory] = ()
        lines.append(FitLine(limit.name, memory, limit.nbytes, counted))
    return Fit(tuple(lines), tuple(notes(report, memories, io_elsewhere)))


def fit_board(report: Figures, ram: int, flash: int, io_elsewhere: bool = False) -> tuple[FitLine, ...]:
    """Compare flash, RAM and stack of a board with the program's needs of them: all that is only read; all that is written
    (without the caller's inputs and outputs by `io_elsewhere`), and the stack of a call; the stack with the RAM that the rest
    leaves."""
    data = tuple(written(report, set(), io_elsewhere))
    rest = max(0, ram - sum(n.nbytes for n in data))
    call = tuple(stack(report, ["RAM"]))
    lines = (FitLine("flash", "flash", flash, tuple(read_only(report, set()))), FitLine("RAM", "RAM", ram, (*data, *call)))
    return (*lines, FitLine("stack", "stack", rest, call)) if call else lines


def memory_of(report: Figures, limit: Limit, position: int) -> Memory:
    """Return the kind of a limit: that of the pool of that name, of the name itself, or of its position in the list."""
    pool = pool_named(report, limit.name)
    if pool:
        return "RAM" if pool.kind == "workspace" else "flash"
    word = limit.name.lower().rstrip("0123456789_-")
    if word in MEMORIES:
        return MEMORIES[word]
    if position > 1:
        known = ", ".join(p.name for p in report.pools) or "none"
        raise Problem(f"--fit does not know what {limit.name} is for", kind="option",
                      help=f"name a pool of the plan ({known}), or a kind of memory such as sram or flash")
    return "RAM" if position == 0 else "flash"


def pool_named(report: Figures, name: str) -> PoolLine | None:
    return next((p for p in report.pools if p.name == name), None)


def in_pool(report: Figures, pool: PoolLine) -> Iterator[Need]:
    """Yield the contents of a pool that a limit names: its buffers, and the variables that are pinned to it."""
    yield Need(f"pool {pool.name}", pool.nbytes)
    if report.state_in(pool.name):
        yield Need(f"state in {pool.name}", report.state_in(pool.name))


def written(report: Figures, named: set[str], io_elsewhere: bool) -> Iterator[Need]:
    """Yield needs of RAM, except for the named pools and for inputs and outputs that are elsewhere."""
    for pool in report.workspace_pools:
        if pool.name not in named:
            yield Need(pool.name, pool.nbytes)
    if report.state:
        size, elsewhere = report.object, sum(report.state_in(pool) for pool in named)
        yield Need("state", (max(report.state, size.data + size.zero) if size else report.state) - elsewhere)
    if report.undo:
        yield Need("copies of variables", report.undo)
    if not io_elsewhere:
        yield from memory_of_the_caller(report)


def memory_of_the_caller(report: Figures) -> Iterator[Need]:
    """Yield inputs and outputs, except for those that the plan holds in the workspace."""
    planned = {b.kind for b in report.buffers}
    for kind, buffers in (("input", report.inputs), ("output", report.outputs)):
        if buffers and kind not in planned:
            yield Need(f"{kind}s", sum(b.nbytes for b in buffers))


def stack(report: Figures, memories: Sequence[Memory]) -> Iterator[Need]:
    """Yield the stack of a call, if exactly one RAM can hold it."""
    if memories.count("RAM") == 1 and report.object and report.object.stack:
        yield Need("stack", report.object.stack)


def read_only(report: Figures, named: set[str]) -> Iterator[Need]:
    """Yield needs of flash, except for the named pools."""
    for pool in report.constant_pools:
        if pool.name not in named:
            yield Need(pool.name, pool.nbytes)
    size = report.object
    in_pools = sum(b.nbytes for b in report.buffers if b.kind == "constant")
    yield Need("constants", size.constants if size else report.constants - in_pools)
    if size:
        yield Need("code", size.text)
        yield Need("tables", size.tables)
        yield Need("initial values", size.data)


def notes(report: Figures, memories: Sequence[Memory], io_elsewhere: bool) -> Iterator[str]:
    if not report.object:
        yield "not counted: code, which was not measured"
    elif "flash" in memories:
        yield f"code is that of {report.target}"
    if "RAM" not in memories:
        yield f"RAM was not asked about: {sum(n.nbytes for n in written(report, set(), io_elsewhere)):,} bytes"
    if "flash" not in memories:
        yield f"flash was not asked about: {sum(n.nbytes for n in read_only(report, set())):,} bytes"
    is_counted = bool(tuple(stack(report, memories)))
    yield UNCOUNTED.format(stack="the stack of interrupts" if is_counted else "the stack")
    yield from placed_io(report, io_elsewhere)


def placed_io(report: Figures, io_elsewhere: bool) -> Iterator[str]:
    """Yield where inputs and outputs were counted, if not as memory of the caller."""
    if any(b.kind in IO for b in report.buffers):
        yield "inputs and outputs lie in the workspace, and count there"
    elif io_elsewhere:
        yield (f"inputs and outputs ({sum(b.nbytes for b in (*report.inputs, *report.outputs)):,} bytes) lie elsewhere, "
               "as --io-elsewhere says")
