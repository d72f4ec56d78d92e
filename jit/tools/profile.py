"""Profile of a call: each kernel's share of the time, from readings of the processor's counter around every step
(`lowering/native/driver/timed_driver.py`), as a table, as JSON, and as a trace for Chrome's viewer.

The time of the whole call is that of the code without notes (`call_times`). A step that is shorter than the counter can
resolve, or than a note takes, is measured in further calls, which repeat it on the same contents of its buffers. A kernel's
time is that of the calls in which it runs: kernels of a branch run only in some. For the table, the tasks of a parallel step
run one after the other; in the calls of the trace they run on as many threads as the function is compiled for.
"""
from __future__ import annotations

import dataclasses
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...lowering.graph.types import Array
from ...lowering.kernels.kernel import Compute
from ...lowering.native.driver.timed_driver import repeats_of
from ...runtime.errors import Position, Problem, printable
from ...runtime.variables import Context
from .call_times import CallTimes, Clock, times_of

if TYPE_CHECKING:
    from ...lowering.kernels.kernel import Kernel
    from ..stage_data import LoweredData

WARM_UP = 3
"""Number of calls before the first that counts."""

LEAST_SECONDS = 0.05
"""Minimum time, in seconds, of the calls, so that the counter's ticks can be compared with the clock."""

LONG_STEPS, LONG_SECONDS = 100, 2e-6
"""Minimum length of a note, in steps of the counter and in seconds, for an error of about a hundredth at most."""
MOST_REPEATS = 1 << 14
READINGS = 64
"""Number of calls whose readings determine the resolution of the counter."""
REPEATED_CALLS = 10
"""Maximum number of calls with repeated steps, if they take longer than `LEAST_SECONDS`."""
MOST_RESTORED = 1 << 28
"""Maximum bytes that all repetitions of a kernel in one call may copy to restore their contents: a tenth of a second or
less."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Nanoseconds of a kernel in the calls in which it runs, minimum and median. `steps` is the number of steps in such a call,
    `share` the fraction of calls in which it runs. `repeats` is the number of repetitions of each step to measure its time,
    `is_told` is True if they were enough."""
    least: float
    median: float
    steps: int
    share: float = 1.0
    repeats: int = 1
    is_told: bool = True


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One kernel over all calls, the number of elements and of terms of sums that it computes, and its times as in
    `StepTimes`."""
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
    share: float = 1.0

    @property
    def rate(self) -> float:
        """Terms per nanosecond."""
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
    """The kernels, longest first, and the steps of the last calls, as many as are `traced`. `least` and `median` are
    nanoseconds of a call on one thread, without notes. `resolution` is the nanoseconds of the counter's smallest step, `pools`
    names the memories of the spans' live bytes."""
    name: str
    kernels: tuple[KernelTime, ...]
    traced: tuple[tuple[Span, ...], ...]
    calls: int
    least: float
    median: float
    dropped: int = 0
    """Number of steps of a call that were not noted, for lack of room."""
    resolution: float = 0.0
    pools: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return printable(f"<Profile {self.name}: {self.least / 1e3:,.2f} us a call, {len(self.kernels)} kernels>")

    @property
    def spans(self) -> tuple[Span, ...]:
        """Steps of the last call, in the order in which they began."""
        return self.traced[-1]

    @property
    def kernel_nanoseconds(self) -> float:
        """Time of all kernels, one by one: the minimum of each, weighted by the fraction of the calls in which it runs. A
        processor overlaps short kernels in a call, so that this may be more than the whole."""
        return sum(k.least * k.share for k in self.kernels)

    def __str__(self) -> str:
        total = sum(k.least for k in self.kernels) or 1.0
        lines = [f"{printable(self.name)}: {self.least / 1e3:,.2f} us a call (median {self.median / 1e3:,.2f}) over "
                 f"{self.calls} calls, {len(self.kernels)} kernels in {len(self.spans)} steps"]
        if self.dropped:
            lines.append(f"  {self.dropped} steps of a call were not noted")
        lines.append(f"  kernels take {self.kernel_nanoseconds / 1e3:,.2f} us of a call, one by one")
        lines.append(f"  {'us':>10} {'median':>10} {'share':>6} {'steps':>6} {'terms/ns':>9}  kernel")
        for k in self.kernels:
            where = f"  ({k.position})" if k.position else ""
            mark = ("" if k.share == 1 else f"  in {k.share:.0%} of calls") + ("" if k.is_told else " *")
            lines.append(f"  {k.least / 1e3:10.3f} {k.median / 1e3:10.3f} {k.least / total:6.1%} {k.steps:6} {k.rate:9.2f}  "
                         f"{k.number} {printable(k.origin)} -> {k.result}{where}{mark}")
        if not all(k.is_told for k in self.kernels):
            lines.append("  * shorter than the counter tells, and not repeated enough, because it writes much of what it reads")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the profile as JSON data, with times in nanoseconds."""
        kernels = [{"kernel": k.number, "origin": k.origin, "result": k.result, "least": k.least, "median": k.median,
                    "steps": k.steps, "terms": k.terms, "repeats": k.repeats, "is_told": k.is_told,
                    "share": k.share, "position": str(k.position) if k.position else None} for k in self.kernels]
        return {"name": self.name, "calls": self.calls, "least": self.least, "median": self.median, "dropped": self.dropped,
                "resolution": self.resolution, "kernel_nanoseconds": self.kernel_nanoseconds, "kernels": kernels}

    def trace(self) -> dict[str, Any]:
        """Return the traced calls in the Trace Event Format, which Perfetto and Chrome's viewer open: steps by thread, and the
        bytes that are live in each pool as counters."""
        from .trace_events import trace_events
        return trace_events(self)


def profile(lowered: LoweredData, inputs: Sequence[Array], calls: int = 100, traced: int = 1) -> Profile:
    """Call the function with these arrays, at least `calls` times, on private variables; the trace has the last `traced` calls.
    Raises a Problem for a target that this process cannot run, or that has no counter."""
    from ...lowering.native.driver.parallel_steps import is_parallel
    from ...lowering.native.driver.timed_driver import new_events
    events = new_events(len(lowered.kernels.kernels))
    run = timed(lowered, events)
    for _ in range(WARM_UP):
        run(inputs)
    once, times = step_times(lambda: run(inputs), events, most_repeats(lowered), max(calls, traced))
    shown = once
    if is_parallel(lowered.program):
        repeats_of(events)[:] = 1
        shown = measured(lambda: run(inputs, lowered.threads), events, max(WARM_UP, traced))
    spans = traced_calls(lowered, shown, traced, caller_of(once))
    whole = whole_call(lowered, inputs, calls)
    return Profile(lowered.traced.name, kernel_times(lowered, times), spans, len(once.notes), whole.least, whole.median,
                   once.dropped, once.resolution, tuple(p.name for p in lowered.plan.workspace_pools))


def whole_call(lowered: LoweredData, inputs: Sequence[Array], calls: int) -> CallTimes:
    """Return the times of calls without notes, on one thread."""
    from ...lowering.native.process.load import native_code
    from ...runtime.executable import Executable
    code, _ = native_code(lowered.program, lowered.plan, lowered.target, lowered.elements(), threads=lowered.threads)
    executable = Executable(code, Context("profiled whole"))
    return times_of(executable, inputs, calls, executable.context.snapshot(), 1)


def kernel_times(lowered: LoweredData, times: Sequence[StepTimes]) -> tuple[KernelTime, ...]:
    """Return the kernels with their times, longest first."""
    from ...lowering.native.process.load import terms_of
    found = [kernel_time(i, kernel, t, terms_of(kernel)) for i, (kernel, t) in
             enumerate(zip(lowered.kernels.kernels, times, strict=True))]
    return tuple(sorted(found, key=lambda k: -k.least))


def timed(lowered: LoweredData, events: Array) -> Callable[..., Any]:
    """Return the function with notes in `events`: it takes its arrays, and the number of threads that may run its tasks (1)."""
    from ...lowering.native.driver.timed_driver import kept_nbytes
    from ...lowering.native.process.load import frame_places, native_code, timed_text
    from ...lowering.target.presets import host
    from ...runtime.executable import Executable
    if lowered.target.triple != host().triple:
        raise Problem(f"code for {lowered.target.triple} cannot be profiled on {host().triple}", kind="option")
    text = timed_text(lowered.program, lowered.plan, lowered.target)
    code, _ = native_code(lowered.program, lowered.plan, lowered.target, lowered.elements(), text)
    kept = kept_nbytes(lowered.program, frame_places(lowered.program, lowered.plan))
    room = np.zeros(max(kept, default=0) + 1, np.uint8)
    executable = Executable(dataclasses.replace(code, constants=(*code.constants, events, room)), Context("profile"))
    return lambda inputs, threads=1: executable(*inputs, num_threads=threads)


@dataclass(frozen=True, slots=True)
class Measured:
    """The notes of each call, nanoseconds of a tick of the counter, and the number of steps of a call that found no room."""
    notes: Sequence[Array]
    tick: float
    dropped: int

    @property
    def resolution(self) -> float:
        """Nanoseconds of the counter's smallest step: the common divisor of the differences of its readings."""
        read = np.concatenate([n[:, 3:5].ravel() for n in self.notes[-READINGS:]])
        return float(np.gcd.reduce(read - read[0])) * self.tick if len(read) else 0.0

    def times(self, kernels: int) -> Array:
        """Return the nanoseconds of each kernel in each call."""
        sums = [np.bincount(n[:, 0], n[:, 4] - n[:, 3], kernels) for n in self.notes]
        return np.array(sums).reshape(len(self.notes), -1) * self.tick

    def steps(self, kernels: int) -> Array:
        """Return the number of steps of each kernel in each call."""
        counts = [np.bincount(n[:, 0], minlength=kernels) for n in self.notes]
        return np.array(counts).reshape(len(self.notes), -1)


def measured(run: Callable[[], Any], events: Array, calls: int, clock: Clock = time.perf_counter_ns) -> Measured:
    """Make calls with notes, at least `calls` of them."""
    from ...lowering.native.driver.timed_driver import MAX_NOTES, noted
    noted(events)
    found: list[Array] = []
    start = clock()
    while len(found) < calls or clock() - start < LEAST_SECONDS * 1e9:
        run()
        now, count = clock(), int(events[0, 0])
        found.append(noted(events))
    if not len(found[0]):
        return Measured(found, 0.0, 0)
    ticks = found[-1][-1, 4] - found[0][0, 3]
    return Measured(found, (now - start) / float(max(ticks, 1)), max(0, count - MAX_NOTES))


def step_times(run: Callable[[], Any], events: Array, most: Sequence[int], calls: int, clock: Clock = time.perf_counter_ns
               ) -> tuple[Measured, list[StepTimes]]:
    """Return the notes of calls without repetitions, and the times of each kernel, whose steps may be repeated `most` times."""
    once = measured(run, events, calls, clock)
    wanted = wanted_repeats(once, len(most))
    repeats = np.minimum(wanted, most)
    found = once
    if (repeats > 1).any():
        repeats_of(events)[:len(most)] = repeats
        run()
        found = measured(run, events, min(calls, REPEATED_CALLS), clock)
    single, again = (kernel_columns(m, len(most)) for m in (once, found))
    return once, [step_time(once, b if n > 1 and b[1].any() else a, a[1], int(n), bool(n >= w))
                  for a, b, n, w in zip(single, again, repeats, wanted, strict=True)]


def summary(lowered: LoweredData, found: Measured) -> Profile:
    """Return the notes by kernel, of calls without repetitions and without a trace. The whole lasts from the first step's
    beginning to the last one's end."""
    totals = [float(n[-1, 4] - n[0, 3]) * found.tick if len(n) else 0.0 for n in found.notes]
    times = [step_time(found, column, column[1], 1, True) for column in kernel_columns(found, len(lowered.kernels.kernels))]
    return Profile(lowered.traced.name, kernel_times(lowered, times), ((),), len(found.notes), min(totals),
                   statistics.median(totals), found.dropped, found.resolution)


def kernel_columns(found: Measured, kernels: int) -> list[tuple[Array, Array]]:
    """Return, for each kernel, its nanoseconds and its steps in each call."""
    return list(zip(found.times(kernels).T, found.steps(kernels).T))


def step_time(once: Measured, column: tuple[Array, Array], steps: Array, repeats: int, is_told: bool) -> StepTimes:
    """Return the times of a kernel, over the calls in which it runs. If the counter does not resolve most of them, use the mean
    of all, which is finer than a reading, and at least a part of the counter's smallest step."""
    times, counts = column
    if not steps.any():
        return StepTimes(0.0, 0.0, 0, 0.0)
    ran = times[counts > 0] / repeats
    median, mean = float(np.median(ran)), float(ran.mean()) or (once.resolution or once.tick) / (len(ran) * repeats)
    least, median = (float(ran[ran > 0].min()), median) if median > 0 else (mean, mean)
    return StepTimes(least, median, int(steps[steps > 0][-1]), float((steps > 0).mean()), repeats, is_told)


def wanted_repeats(once: Measured, kernels: int) -> Array:
    """Return, for each kernel, the repetitions of a step between two counter readings that make its time measurable."""
    long, steps = max(LONG_STEPS * once.resolution, LONG_SECONDS * 1e9), once.steps(kernels).sum(axis=0)
    means = once.times(kernels).sum(axis=0) / np.maximum(steps, 1)
    wanted = np.clip(np.ceil(long / np.maximum(means, 1.0)), 1, MOST_REPEATS).astype(np.int64)
    return np.asarray(np.where(steps > 0, wanted, 1))


def most_repeats(lowered: LoweredData) -> list[int]:
    """Return the maximum repetitions of each kernel: restoring its buffers' contents must stay within the limit of bytes."""
    from ...lowering.native.driver.timed_driver import kept_nbytes
    from ...lowering.native.process.load import frame_places
    kept = kept_nbytes(lowered.program, frame_places(lowered.program, lowered.plan))
    steps = Counter(step.kernel for step in lowered.program.steps if isinstance(step, Compute))
    return [max(1, min(MOST_REPEATS, MOST_RESTORED // (max(1, n) * max(1, steps[i])))) for i, n in enumerate(kept)]


def caller_of(serial: Measured) -> int:
    """Return the number of the calling thread, from a note of calls that used no other thread."""
    return next((int(n[0, 5]) for n in serial.notes if len(n)), 0)


def traced_calls(lowered: LoweredData, found: Measured, count: int, caller: int) -> tuple[tuple[Span, ...], ...]:
    """Return the steps of the last calls, each call in the order in which they began."""
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


def kernel_time(number: int, kernel: Kernel, times: StepTimes, terms: int) -> KernelTime:
    shape = "x".join(map(str, kernel.out.shape))
    return KernelTime(number, kernel.origin, f"{kernel.out.dtype}[{shape}]", kernel.position, times.steps, times.least,
                      times.median, terms, times.repeats, times.is_told, times.share)
