"""Measure a call of compiled code: the minimum and the median over calls after a warm-up, without Python's overhead. Each pass
over a sequence of calls begins with the same variables, so that a stateful model makes the same calls in each pass and few
calls are measured as exactly as many.
"""
from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.executable import Executable
from ...runtime.interrupts import INTERRUPTED
from ...runtime.interrupts import process as interrupts
from ...runtime.variables import Context

LEAST_SECONDS = 0.05
"""Minimum time, in seconds, for which passes are measured."""

MOST_SECONDS = 0.1
"""Seconds of a sequence of calls above which it is shortened."""

MOST_TIMES = 1 << 20
"""Maximum number of calls in one batch of passes: eight bytes each."""

OVERHEAD_CALLS = 1000
"""Number of empty calls that measure the cost of two counter readings."""

Timer: TypeAlias = Callable[[int, int], Array]
"""A function that makes passes of some calls and returns the ticks of each call, followed by those of all together."""
Clock: TypeAlias = Callable[[], int]
"""A clock in nanoseconds."""


@dataclass(frozen=True, slots=True)
class CallTimes:
    """The minimum and the median nanoseconds of a call, over `calls` measured calls."""
    least: float
    median: float
    calls: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Measured passes: ticks of each call and of all together, and the nanoseconds of all."""
    ticks: Array
    whole: int
    nanoseconds: int


def measured(timer: Timer, calls: int, passes: int, clock: Clock) -> Batch:
    start = clock()
    ticks = timer(calls, passes)
    return Batch(ticks[:-1], int(ticks[-1]), clock() - start)


def call_times(timer: Timer, nothing: Timer, calls: int, clock: Clock = time.perf_counter_ns) -> CallTimes:
    """Measure a sequence of `calls`, over and over; `nothing` times calls that do nothing, whose ticks are subtracted. The
    first call is a warm-up, and so is the first pass if there are others."""
    once = measured(timer, 1, 1, clock).nanoseconds
    calls = int(np.clip(MOST_SECONDS * 1e9 / max(once, 1), 1, min(calls, MOST_TIMES)))
    batches, passes = list[Batch](), 1
    while sum(b.nanoseconds for b in batches) < LEAST_SECONDS * 1e9:
        batches.append(measured(timer, calls, passes, clock))
        passes = min(2 * passes, max(1, MOST_TIMES // calls))
    tick = nanoseconds_of_tick(batches)
    overhead = float(np.mean(measured(nothing, OVERHEAD_CALLS, 1, clock).ticks))
    ticks = np.concatenate([b.ticks for b in batches[1:] or batches])
    return CallTimes(told(np.min, overhead, ticks) * tick, told(np.median, overhead, ticks) * tick, ticks.size)


def nanoseconds_of_tick(batches: Sequence[Batch]) -> float:
    """Return the nanoseconds of a tick: the difference between the longest and the shortest batch, by the clock, divided by
    that by the counter. This cancels Python's overhead, which is in both batches."""
    several = batches if len(batches) > 1 else [Batch(np.zeros(0), 0, 0), *batches]
    shortest, *_, longest = sorted(several, key=lambda b: b.whole)
    return (longest.nanoseconds - shortest.nanoseconds) / max(longest.whole - shortest.whole, 1)


def told(pick: Callable[[Array], float], overhead: float, ticks: Array) -> float:
    """Return the least or the median of some ticks without the cost of reading them; if that is less than one tick, their mean,
    as the mean of many readings is finer than one reading. Return at least a part of a tick."""
    single = float(pick(ticks)) - overhead
    return single if single >= 1 else max(float(np.mean(ticks)) - overhead, 1 / ticks.size)


# ---- compiled code -----------------------------------------------------------------------------------------------------------
def times_of(executable: Executable, arrays: Sequence[Array], calls: int, state: Mapping[str, Array | None],
             num_threads: int | None = None) -> CallTimes:
    """Return the times of calls with these arrays that begin with variables of these values, on private variables."""
    context = Context("timed")
    own = executable.bind(context)
    context.restore(state)
    with timers(own, arrays, num_threads) as (timer, nothing):
        return call_times(timer, nothing, calls)


@contextmanager
def timers(executable: Executable, arrays: Sequence[Array], num_threads: int | None = None) -> Iterator[tuple[Timer, Timer]]:
    """Yield timers of calls with these arrays, and of empty calls: native timers, which need the processor's counter."""
    from ...lowering.native.process.call_timer import is_supported, timer
    if not is_supported():
        yield clocked(executable, arrays, num_threads), lambda calls, passes: np.zeros(calls * passes + 1, np.int64)
        return
    native, code = timer(), executable.code
    with executable.entered(*arrays, num_threads=num_threads) as (frame, memory):
        copies = [ctypes.create_string_buffer(ctypes.string_at(start, nbytes), nbytes) for start, nbytes in memory]
        kept = [(start, ctypes.addressof(copy), nbytes) for (start, nbytes), copy in zip(memory, copies)]

        def run(calls: int, passes: int) -> Array:
            status, times = native.ticks(code.run_address, frame, calls, passes, kept)
            if status == INTERRUPTED:
                interrupts.raise_error()
            if status:
                executable.fault(status)
            return times

        yield run, lambda calls, passes: native.ticks(native.nothing, frame, calls, passes)[1]
        for start, copy, nbytes in kept:
            ctypes.memmove(start, copy, nbytes)


def clocked(executable: Executable, arrays: Sequence[Array], num_threads: int | None) -> Timer:
    """Return a timer by Python's clock, in nanoseconds, including Python's part of a call."""
    def run(calls: int, passes: int) -> Array:
        before, ends = executable.context.snapshot(), [time.perf_counter_ns()]
        for _ in range(passes):
            executable.context.restore(before)
            for _ in range(calls):
                executable(*arrays, num_threads=num_threads)
                ends.append(time.perf_counter_ns())
        return np.array([*np.diff(ends), ends[-1] - ends[0]], np.int64)

    return run
