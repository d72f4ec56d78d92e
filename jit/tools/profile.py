"""Where a compiled function spends its time: each kernel's share, from notes of a processor's counter around every step
(`lowering/native/driver/timed_driver.py`), as a table, as JSON, and as a trace for Chrome's viewer.

A profile is of code that is the function's own but for the notes; each kernel's time has a few nanoseconds of them in it. Steps
in tasks run one task after the other.
"""
from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Position, Problem, printable

if TYPE_CHECKING:
    from ...lowering.kernels.kernel import Kernel
    from ..stage_data import LoweredData

WARM_UP = 3
"""Calls before the first that counts."""

LEAST_SECONDS = 0.05
"""Calls go on for so long, so that the counter's ticks can be compared with the clock."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One kernel over all calls: nanoseconds of a call, the least and the median; `steps` is how many steps of a call run it,
    `terms` how many elements and terms of sums it computes."""
    number: int
    origin: str
    result: str
    position: Position | None
    steps: int
    least: float
    median: float
    terms: int

    @property
    def rate(self) -> float:
        """Terms in a nanosecond."""
        return self.terms / self.least if self.least else 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """A step of the last call, in nanoseconds from its beginning."""
    kernel: int
    rows: tuple[int, int]
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The kernels, the one that takes longest first, and the steps of the last call in order. `least` and `median` are
    nanoseconds from the first step's beginning to the last one's end."""
    name: str
    kernels: tuple[KernelTime, ...]
    spans: tuple[Span, ...]
    calls: int
    least: float
    median: float
    dropped: int = 0
    """Steps of a call that were not noted, for want of room."""

    def __str__(self) -> str:
        total = sum(k.least for k in self.kernels) or 1.0
        lines = [f"{printable(self.name)}: {self.least / 1e3:,.2f} us a call (median {self.median / 1e3:,.2f}) over "
                 f"{self.calls} calls, {len(self.kernels)} kernels in {len(self.spans)} steps"]
        if self.dropped:
            lines.append(f"  {self.dropped} steps of a call were not noted")
        lines.append(f"  {'us':>10} {'median':>10} {'share':>6} {'steps':>6} {'terms/ns':>9}  kernel")
        for k in self.kernels:
            where = f"  ({k.position})" if k.position else ""
            lines.append(f"  {k.least / 1e3:10.2f} {k.median / 1e3:10.2f} {k.least / total:6.1%} {k.steps:6} {k.rate:9.2f}  "
                         f"{k.number} {printable(k.origin)} -> {k.result}{where}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Times in nanoseconds."""
        return {"name": self.name, "calls": self.calls, "least": self.least, "median": self.median, "dropped": self.dropped,
                "kernels": [{"kernel": k.number, "origin": k.origin, "result": k.result, "least": k.least, "median": k.median,
                             "steps": k.steps, "terms": k.terms, "position": str(k.position) if k.position else None}
                            for k in self.kernels]}

    def trace(self) -> dict[str, Any]:
        """The last call in the format of Chrome's trace viewer (microseconds)."""
        names = {k.number: k for k in self.kernels}
        return {"displayTimeUnit": "ns", "traceEvents": [
            {"name": f"{s.kernel} {names[s.kernel].origin}", "ph": "X", "ts": s.begin / 1e3, "dur": (s.end - s.begin) / 1e3,
             "pid": 0, "tid": 0, "args": {"rows": list(s.rows), "result": names[s.kernel].result}} for s in self.spans]}


def profile(lowered: LoweredData, inputs: Sequence[Array], calls: int = 100) -> Profile:
    """Call the function with these arrays, `calls` times and more, on variables of its own. Raises a Problem for a target that
    this process cannot run, or that has no counter."""
    from ...lowering.native.driver.timed_driver import new_events
    events = new_events()
    run = timed(lowered, events)
    for _ in range(WARM_UP):
        run(inputs)
    return summary(lowered, *measured(lambda: run(inputs), events, calls))


def timed(lowered: LoweredData, events: Array) -> Callable[[Sequence[Array]], Any]:
    """The function with notes in `events`."""
    from ...lowering.native.process.load import native_code, timed_text
    from ...lowering.target.presets import host
    from ...runtime.executable import Executable
    from ...runtime.variables import Context
    if lowered.target.triple != host().triple:
        raise Problem(f"code for {lowered.target.triple} cannot be profiled on {host().triple}", kind="option")
    text = timed_text(lowered.program, lowered.plan, lowered.target)
    code, _ = native_code(lowered.program, lowered.plan, lowered.target, lowered.elements(), text)
    executable = Executable(dataclasses.replace(code, constants=(*code.constants, events)), Context("profile"))
    return lambda inputs: executable(*inputs, num_threads=1)


def measured(run: Callable[[], Any], events: Array, calls: int) -> tuple[list[Array], float, int]:
    """The notes of each call, nanoseconds of a tick, and how many steps of a call found no room."""
    from ...lowering.native.driver.timed_driver import MAX_NOTES, noted
    noted(events)
    found: list[Array] = []
    start = time.perf_counter_ns()
    while len(found) < calls or time.perf_counter_ns() - start < LEAST_SECONDS * 1e9:
        run()
        now, count = time.perf_counter_ns(), int(events[0, 0])
        found.append(noted(events))
    if not len(found[0]):
        return found, 0.0, 0
    ticks = found[-1][-1, 4] - found[0][0, 3]
    return found, (now - start) / float(max(ticks, 1)), max(0, count - MAX_NOTES)


def summary(lowered: LoweredData, notes: Sequence[Array], tick: float, dropped: int) -> Profile:
    """The notes by kernel."""
    from ...lowering.native.process.load import terms_of
    kernels = lowered.kernels.kernels
    sums = np.array([np.bincount(n[:, 0], n[:, 4] - n[:, 3], len(kernels)) for n in notes]).reshape(len(notes), -1) * tick
    totals = [float(n[-1, 4] - n[0, 3]) * tick if len(n) else 0.0 for n in notes]
    last = notes[-1]
    found = [kernel_time(i, k, int(np.sum(last[:, 0] == i)), sums[:, i], terms_of(k)) for i, k in enumerate(kernels)]
    first = last[0, 3] if len(last) else 0
    spans = tuple(Span(int(k), (int(low), int(high)), float(begin - first) * tick, float(end - first) * tick)
                  for k, low, high, begin, end in last)
    return Profile(lowered.traced.name, tuple(sorted(found, key=lambda k: -k.least)), spans, len(notes), min(totals),
                   statistics.median(totals), dropped)


def kernel_time(number: int, kernel: Kernel, steps: int, times: Array, terms: int) -> KernelTime:
    shape = "x".join(map(str, kernel.out.shape))
    return KernelTime(number, kernel.origin, f"{kernel.out.dtype}[{shape}]", kernel.position, steps, float(times.min()),
                      float(np.median(times)), terms)
