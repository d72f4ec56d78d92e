"""Where a compiled function spends its time: each kernel's share, from notes of a processor's counter around every step
(`lowering/native/driver/timed_driver.py`), as a table, as JSON, and as a trace for Chrome's viewer.

A profile is of code that is the function's own but for the notes. What is shorter than the counter can tell, or than a note
takes, is measured in further calls, in which its steps are repeated between two readings; a kernel that writes what it reads
cannot be, and the profile says so. For the table, steps in tasks run one task after the other; in the calls of the trace they
run on as many threads as the function is compiled for.
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

LONG_STEPS, LONG_SECONDS = 100, 2e-6
"""A note that takes so many steps of the counter, and so long, has an error of about a hundredth at most."""
MOST_REPEATS = 1 << 14
READINGS = 64
"""Calls whose readings tell how fine the counter is."""
REPEATED_CALLS = 10
"""Calls with repeated steps at most, where they take longer than `LEAST_SECONDS`."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One kernel over all calls: nanoseconds of a call, the least and the median; `steps` is how many steps of a call run it,
    `terms` how many elements and terms of sums it computes. `repeats` is how often each step was repeated to tell its time,
    `is_told` whether that was enough."""
    number: int
    origin: str
    result: str
    position: Position | None
    steps: int
    least: float
    median: float
    terms: int
    repeats: int = 1
    is_told: bool = True

    @property
    def rate(self) -> float:
        """Terms in a nanosecond."""
        return self.terms / self.least if self.least else 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """A step of a call, in nanoseconds from the beginning of the first one traced, and the bytes that are live in each pool
    while it runs. `thread` 0 is the caller's, the others are those of the pool."""
    kernel: int
    rows: tuple[int, int]
    begin: float
    end: float
    live: tuple[int, ...] = ()
    thread: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """The kernels, the one that takes longest first, and the steps of the last calls, as many as are `traced`. `least` and
    `median` are nanoseconds from the first step's beginning to the last one's end. `resolution` is the nanoseconds of the
    counter's smallest step, `pools` names the memories of the spans' live bytes."""
    name: str
    kernels: tuple[KernelTime, ...]
    traced: tuple[tuple[Span, ...], ...]
    calls: int
    least: float
    median: float
    dropped: int = 0
    """Steps of a call that were not noted, for want of room."""
    resolution: float = 0.0
    pools: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return printable(f"<Profile {self.name}: {self.least / 1e3:,.2f} us a call, {len(self.kernels)} kernels>")

    @property
    def spans(self) -> tuple[Span, ...]:
        """The steps of the last call, in the order in which they began."""
        return self.traced[-1]

    def __str__(self) -> str:
        total = sum(k.least for k in self.kernels) or 1.0
        lines = [f"{printable(self.name)}: {self.least / 1e3:,.2f} us a call (median {self.median / 1e3:,.2f}) over "
                 f"{self.calls} calls, {len(self.kernels)} kernels in {len(self.spans)} steps"]
        if self.dropped:
            lines.append(f"  {self.dropped} steps of a call were not noted")
        lines.append(f"  {'us':>10} {'median':>10} {'share':>6} {'steps':>6} {'terms/ns':>9}  kernel")
        for k in self.kernels:
            where = f"  ({k.position})" if k.position else ""
            mark = "" if k.is_told else " *"
            lines.append(f"  {k.least / 1e3:10.3f} {k.median / 1e3:10.3f} {k.least / total:6.1%} {k.steps:6} {k.rate:9.2f}  "
                         f"{k.number} {printable(k.origin)} -> {k.result}{where}{mark}")
        if not all(k.is_told for k in self.kernels):
            lines.append("  * shorter than the counter tells, and not repeated, because it writes what it reads")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Times in nanoseconds."""
        kernels = [{"kernel": k.number, "origin": k.origin, "result": k.result, "least": k.least, "median": k.median,
                    "steps": k.steps, "terms": k.terms, "repeats": k.repeats, "is_told": k.is_told,
                    "position": str(k.position) if k.position else None} for k in self.kernels]
        return {"name": self.name, "calls": self.calls, "least": self.least, "median": self.median, "dropped": self.dropped,
                "resolution": self.resolution, "kernels": kernels}

    def trace(self) -> dict[str, Any]:
        """The calls that were traced, in the Trace Event Format, which Perfetto and Chrome's viewer open: steps by thread, and
        the bytes that are live in each pool as counters."""
        from .trace_events import trace_events
        return trace_events(self)


def profile(lowered: LoweredData, inputs: Sequence[Array], calls: int = 100, traced: int = 1) -> Profile:
    """Call the function with these arrays, `calls` times and more, on variables of its own; the trace has the last `traced`
    calls. Raises a Problem for a target that this process cannot run, or that has no counter."""
    from ...lowering.native.driver.parallel_steps import is_parallel
    from ...lowering.native.driver.timed_driver import new_events, repeats_of
    kernels = lowered.kernels.kernels
    events = new_events(len(kernels))
    run = timed(lowered, events)
    for _ in range(WARM_UP):
        run(inputs)
    once = measured(lambda: run(inputs), events, max(calls, traced))
    shown = once
    if is_parallel(lowered.program):
        shown = measured(lambda: run(inputs, lowered.threads), events, max(WARM_UP, traced))
    found = dataclasses.replace(summary(lowered, once), traced=traced_calls(lowered, shown, traced, caller_of(once)))
    repeats = repeats_for(lowered, once)
    if not any(n > 1 for n in repeats):
        return told(found, repeats, found)
    repeats_of(events)[:len(kernels)] = repeats
    run(inputs)
    return told(found, repeats, summary(lowered, measured(lambda: run(inputs), events, min(calls, REPEATED_CALLS))))


def timed(lowered: LoweredData, events: Array) -> Callable[..., Any]:
    """The function with notes in `events`: takes its arrays, and how many threads may run its tasks (1)."""
    from ...lowering.native.process.load import native_code, timed_text
    from ...lowering.target.presets import host
    from ...runtime.executable import Executable
    from ...runtime.variables import Context
    if lowered.target.triple != host().triple:
        raise Problem(f"code for {lowered.target.triple} cannot be profiled on {host().triple}", kind="option")
    text = timed_text(lowered.program, lowered.plan, lowered.target)
    code, _ = native_code(lowered.program, lowered.plan, lowered.target, lowered.elements(), text)
    executable = Executable(dataclasses.replace(code, constants=(*code.constants, events)), Context("profile"))
    return lambda inputs, threads=1: executable(*inputs, num_threads=threads)


@dataclass(frozen=True, slots=True)
class Measured:
    """The notes of each call, nanoseconds of a tick of the counter, and how many steps of a call found no room."""
    notes: Sequence[Array]
    tick: float
    dropped: int

    @property
    def resolution(self) -> float:
        """Nanoseconds of the counter's smallest step: what its readings are multiples of, from one of them on."""
        read = np.concatenate([n[:, 3:5].ravel() for n in self.notes[-READINGS:]])
        return float(np.gcd.reduce(read - read[0])) * self.tick if len(read) else 0.0

    def times(self, kernels: int) -> Array:
        """Nanoseconds of each kernel in each call."""
        sums = [np.bincount(n[:, 0], n[:, 4] - n[:, 3], kernels) for n in self.notes]
        return np.array(sums).reshape(len(self.notes), -1) * self.tick


def measured(run: Callable[[], Any], events: Array, calls: int) -> Measured:
    """Calls with notes, at least so many."""
    from ...lowering.native.driver.timed_driver import MAX_NOTES, noted
    noted(events)
    found: list[Array] = []
    start = time.perf_counter_ns()
    while len(found) < calls or time.perf_counter_ns() - start < LEAST_SECONDS * 1e9:
        run()
        now, count = time.perf_counter_ns(), int(events[0, 0])
        found.append(noted(events))
    if not len(found[0]):
        return Measured(found, 0.0, 0)
    ticks = found[-1][-1, 4] - found[0][0, 3]
    return Measured(found, (now - start) / float(max(ticks, 1)), max(0, count - MAX_NOTES))


def repeats_for(lowered: LoweredData, once: Measured) -> list[int]:
    """How often a step of each kernel has to run between two readings of the counter, for its time to be told; 0 where that is
    more than once and it cannot be repeated."""
    from ...lowering.native.driver.timed_driver import repeatable
    from ...lowering.native.process.load import frame_places
    kernels, long = len(lowered.kernels.kernels), max(LONG_STEPS * once.resolution, LONG_SECONDS * 1e9)
    steps = np.bincount(once.notes[-1][:, 0], minlength=kernels)
    means = once.times(kernels).mean(axis=0) / np.maximum(steps, 1)
    wanted = np.clip(np.ceil(long / np.maximum(means, 1.0)), 1, MOST_REPEATS).astype(int)
    can = repeatable(lowered.program, frame_places(lowered.program, lowered.plan))
    return [1 if n == 1 or not ran else int(n) if able else 0 for n, ran, able in zip(wanted, steps, can, strict=True)]


def told(found: Profile, repeats: Sequence[int], again: Profile) -> Profile:
    """A profile with the times of calls in which steps were repeated, for the kernels that were."""
    times = {k.number: k for k in again.kernels}
    kernels = []
    for k in found.kernels:
        n = repeats[k.number]
        least, median = (times[k.number].least / n, times[k.number].median / n) if n > 1 else (k.least, k.median)
        kernels.append(dataclasses.replace(k, least=least, median=median, repeats=max(n, 1), is_told=n > 0))
    return dataclasses.replace(found, kernels=in_order(kernels))


def in_order(kernels: Sequence[KernelTime]) -> tuple[KernelTime, ...]:
    return tuple(sorted(kernels, key=lambda k: -k.least))


def summary(lowered: LoweredData, found: Measured) -> Profile:
    """The notes by kernel; none is traced."""
    from ...lowering.native.process.load import terms_of
    kernels, notes, tick = lowered.kernels.kernels, found.notes, found.tick
    sums, last = found.times(len(kernels)), notes[-1]
    totals = [float(n[-1, 4] - n[0, 3]) * tick if len(n) else 0.0 for n in notes]
    times = [kernel_time(i, k, int(np.sum(last[:, 0] == i)), sums[:, i], terms_of(k)) for i, k in enumerate(kernels)]
    return Profile(lowered.traced.name, in_order(times), ((),), len(notes), min(totals), statistics.median(totals),
                   found.dropped, found.resolution, tuple(p.name for p in lowered.plan.workspace_pools))


def caller_of(serial: Measured) -> int:
    """The number of the thread that calls: that of a note of calls that used no other."""
    return next((int(n[0, 5]) for n in serial.notes if len(n)), 0)


def traced_calls(lowered: LoweredData, found: Measured, count: int, caller: int) -> tuple[tuple[Span, ...], ...]:
    """The steps of the last calls, each in the order in which they began."""
    from .live_steps import live_in_pools
    calls = [n[np.argsort(n[:, 3], kind="stable")] for n in found.notes[-count:]]
    first = next((n[0, 3] for n in calls if len(n)), 0)
    threads = {caller: 0}
    traced = []
    for notes in calls:
        ran = [(k, low, high) for k, low, high in notes[:, :3].tolist()]
        live = live_in_pools(lowered.program, lowered.plan, ran)
        traced.append(tuple(
            Span(int(k), (int(low), int(high)), float(begin - first) * found.tick, float(end - first) * found.tick, held,
                 threads.setdefault(int(thread), len(threads)))
            for (k, low, high, begin, end, thread), held in zip(notes, live, strict=True)))
    return tuple(traced)


def kernel_time(number: int, kernel: Kernel, steps: int, times: Array, terms: int) -> KernelTime:
    shape = "x".join(map(str, kernel.out.shape))
    return KernelTime(number, kernel.origin, f"{kernel.out.dtype}[{shape}]", kernel.position, steps, float(times.min()),
                      float(np.median(times)), terms)
