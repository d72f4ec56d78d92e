"""The ladder: bytes for the values between operators, from every value in memory of its own to the plan.

A rung is a row of `RUNGS`: a name, its meaning, and a function that returns its bytes and those live at once. The rungs before
fusion see the graph as an interpreter would run it, one operator after the other; they count what the plan counts (the inputs
and outputs only if the plan holds them).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ....lowering.elements.expression import Buffer
from ....lowering.elements.traverse import loads
from ....lowering.graph.types import ITEM_SIZES
from ....lowering.kernels.kernel import Kernels, Step
from ....lowering.memory.algorithms.run import run_algorithm
from ....lowering.memory.buffers import BufferInfo, PoolInfo, own_alignment, with_conflicts
from ....lowering.memory.lifetimes import KernelAccess, lifetimes
from ....lowering.memory.plan import buffer_names, make_plan
from .figures import Rung
from .unfused import Unfused, compilable

if TYPE_CHECKING:
    from ...stage_data import LoweredData

Size = tuple[int, int]
"""Bytes that a rung needs, and the maximum bytes of the same buffers live at once."""


def ladder_of(lowered: LoweredData) -> tuple[Rung, ...]:
    """Return the rungs of a function, the most wasteful first."""
    return tuple(Rung(name, *size(lowered), explanation) for name, explanation, size in RUNGS)


def every_value(lowered: LoweredData) -> Size:
    total = sum(b.size_bytes for b in unfused_buffers(lowered))
    return total, total


def reuse(lowered: LoweredData) -> Size:
    return planned(unfused_buffers(lowered))


def fusion(lowered: LoweredData) -> Size:
    from ....lowering.fuse.fuse import fuse
    return stored(lowered, fuse(lowered.module, lowered.module.function(lowered.traced.name)))


def order(lowered: LoweredData) -> Size:
    return stored(lowered, lowered.kernels)


def stored(lowered: LoweredData, kernels: Kernels) -> Size:
    """Return the size of the buffers that kernels store, each kernel run as a whole."""
    steps, accesses = whole_kernels(kernels)
    return planned(infos(steps, accesses, counted(lowered), alignment(lowered)))


def scratch(lowered: LoweredData) -> Size:
    steps, accesses = whole_kernels(lowered.kernels)
    functions = lowered.program.functions
    inside = [KernelAccess(a.reads, a.writes, f.scratch) for a, f in zip(accesses, functions)]
    return planned(infos(steps, inside, {*counted(lowered), "scratch"}, alignment(lowered)))


def rows(lowered: LoweredData) -> Size:
    """Return the size of the plan's buffers, each with bytes of its own while it is live."""
    return planned(with_conflicts([BufferInfo(b.name, b.size_bytes, b.alignment, kind=b.kind, live=b.live)
                                   for b in lowered.plan.buffers if b.kind != "constant"]))


def plan(lowered: LoweredData) -> Size:
    return lowered.plan.size_bytes, lowered.plan.live_bytes


RUNGS: tuple[tuple[str, str, Callable[[LoweredData], Size]], ...] = (
    ("every value", "each result of an operator in memory of its own", every_value),
    ("reuse", "the same values, memory reused once a value is dead", reuse),
    ("fusion", "only what kernels store", fusion),
    ("order", "the kernels in the order that needs least", order),
    ("scratch", "and what kernels need inside", scratch),
    ("rows", "kernels tiled by rows, and only the rows kept that are read again", rows),
    ("plan", "as planned, with bytes that buffers share while both are live", plan))
"""Name, meaning, bytes and live bytes of each rung."""


def unfused_buffers(lowered: LoweredData) -> tuple[BufferInfo, ...]:
    """Return every value of the graph that is made when the function runs: of the graph as read, or, if its extents are not all
    known, as made static."""
    traced = lowered.traced.function
    function = traced if compilable(traced) else lowered.module.function(traced.name)
    unfused = Unfused(function)
    return infos(unfused.steps, unfused.accesses, counted(lowered), alignment(lowered))


def whole_kernels(kernels: Kernels) -> tuple[tuple[Step, ...], list[KernelAccess]]:
    """Return the kernels in their order, each run once from its first row to its last."""
    accesses = [KernelAccess(tuple(dict.fromkeys(x.buffer for x in loads(k.value))), (k.out,)) for k in kernels.kernels]
    return kernels.steps, accesses


def counted(lowered: LoweredData) -> set[str]:
    """Return the roles of buffers that the plan holds, besides scratch."""
    kinds = {b.kind for b in lowered.plan.buffers}
    return {"temporary", *({"argument", "result"} if kinds & {"input", "output"} else ())}


def alignment(lowered: LoweredData) -> int:
    """Return the plan's maximum alignment of a buffer, in bytes."""
    return max((b.alignment for b in lowered.plan.buffers), default=1)


def infos(steps: Iterable[Step], accesses: Sequence[KernelAccess], roles: set[str], most: int) -> tuple[BufferInfo, ...]:
    """Return the buffers of these roles, aligned to at most `most` bytes, with the conflicts of their lifetimes. Inputs are
    live from the start, outputs to the end."""
    live = lifetimes(steps, accesses)
    end = max((spans[-1][1] for spans in live.values()), default=0)
    names = buffer_names(b for b in live if b.role in roles)

    def info(buffer: Buffer, name: str) -> BufferInfo:
        spans = live[buffer]
        if buffer.role == "argument":
            spans = ((0, spans[-1][1]),)
        if buffer.role == "result":
            spans = ((spans[0][0], end),)
        return BufferInfo(name, buffer.nbytes, own_alignment(buffer.nbytes, ITEM_SIZES[buffer.dtype], most), live=spans)

    return with_conflicts([info(b, name) for b, name in names.items()])


def planned(buffers: Sequence[BufferInfo]) -> Size:
    """Return the size that these buffers need in one pool."""
    pools = (PoolInfo("workspace"),)
    found = make_plan("ladder", "portfolio", buffers, pools, run_algorithm(buffers, pools, "portfolio"))
    return found.size_bytes, found.live_bytes
