"""Alternatives to the cost model's choice for a kernel: the strategies that a measured search (`jit.tools.tune`) tries, the
names of its findings, and the assignment of the strategies that findings or a schedule text ask for.

A finding gives the strategy of each nest of a kernel. The name of the kernel is a digest of its expression, in which buffers
have no names; the name of a strategy is its text. A finding that names none of a nest's alternatives changes nothing, because
it may come from an earlier version; a schedule text that does so is a Problem. So either can make code slow, but never wrong.
"""
from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence

from ...runtime.errors import Problem, printable
from ..elements.expression import Buffer, Expr
from ..kernels.kernel import Kernel
from ..kernels.text import KernelNames
from ..loops.schedule_record import KernelRecord, NestRecord
from .schedule_text import axes_of
from .strategy import Strategy

Choices = tuple[tuple[str, tuple[str, ...]], ...]
"""Findings: for each kernel, its name and the texts of its nests' strategies."""


def alternatives(strategy: Strategy) -> tuple[Strategy, ...]:
    """Return the strategy itself, then every other strategy of its nest that is worth a trial. No two print alike."""
    return tuple({str(s): s for s in (strategy, *strategy.alternatives())}.values())


def tuned(strategies: Sequence[Strategy], kernel: Kernel, by_rows: bool, findings: Choices) -> Sequence[Strategy]:
    """Return the strategies of a kernel's nests, replaced by those of its findings, if there are any."""
    wanted = by_name(findings).get(name_of(kernel, by_rows)) if findings else None
    if wanted is None or len(wanted) != len(strategies):
        return strategies
    return [next((a for a in alternatives(s) if str(a) == text), s) for s, text in zip(strategies, wanted)]


def as_asked(strategies: Sequence[Strategy], nests: Sequence[NestRecord], kernel: KernelRecord) -> Sequence[Strategy]:
    """Return the strategies that a text asks for in the nests of a kernel. Raise a Problem if the text has other nests, or a
    strategy that its nest cannot have."""
    if len(strategies) != len(nests):
        raise Problem(f"the schedule has {len(nests)} loop nests for a kernel that has {len(strategies)}",
                      nests[0].position if nests else kernel.position, kind="schedule",
                      help="a schedule is for one model, machine and set of options; print it again")
    return [asked(s, n) for s, n in zip(strategies, nests)]


def asked(strategy: Strategy, nest: NestRecord) -> Strategy:
    own = record_of(strategy)
    if own.name != nest.name or [n for _, n in own.axes] != [n for _, n in nest.axes]:
        raise Problem(f"the schedule has {nest.name} {axes_of(nest)} where there is {own.name} {axes_of(own)}", nest.position,
                      kind="schedule", help="a schedule is for one model, machine and set of options; print it again")
    if str(strategy) == nest.strategy:
        return strategy
    others = alternatives(strategy)
    found = next((a for a in others if str(a) == nest.strategy), None)
    if found is None:
        raise Problem(f"{nest.name} cannot run as {nest.strategy!r}", nest.position, kind="schedule",
                      help="it may be " + "; or ".join(str(a) for a in others[:4]) + ("; or others" if len(others) > 4 else ""))
    return found


def record_of(strategy: Strategy) -> NestRecord:
    """Return the record of a nest with this strategy."""
    nest = strategy.nest
    return NestRecord(printable(nest.name), tuple([(printable(a.name), a.extent) for a in nest.axes]), str(strategy))


@functools.lru_cache(maxsize=16)
def by_name(findings: Choices) -> Mapping[str, tuple[str, ...]]:
    return dict(findings)


def name_of(kernel: Kernel, by_rows: bool) -> str:
    """Return a digest of the kernel's computation, the same for kernels that differ only in their buffers' names and data."""
    names = Unnamed(kernel.value)
    axes = ", ".join(f"{names.axis(a)}<{a.extent}" for a in kernel.axes)
    value = names.expression(kernel.value)
    shared = [f"{name} := {text}" for name, text in names.shared.values()]
    text = "\n".join((f"{names.buffer(kernel.out)} at [{axes}] by rows: {by_rows}", *shared, value))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Unnamed(KernelNames):
    """Names within a kernel that give buffers by number, role, type and shape."""

    def __init__(self, whole: Expr) -> None:
        super().__init__(whole)
        self.numbers: dict[Buffer, int] = {}

    def buffer(self, buffer: Buffer) -> str:
        number = self.numbers.setdefault(buffer, len(self.numbers))
        return f"b{number}:{buffer.role}:{buffer.dtype}{list(buffer.shape)}"
