"""A profile's traced calls in the Trace Event Format (JSON, microseconds), which Perfetto and Chrome's viewer open: a track for
each thread, with calls and the steps inside of them, and a counter for each memory.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

PROCESS = 1
"""Perfetto reserves 0 for events without a process."""
CALLER = "caller"

Event = dict[str, Any]


class TracedCalls(Protocol):
    """The attributes of a profile (`profile.Profile`) that describe its traced calls."""
    @property
    def name(self) -> str: ...
    @property
    def pools(self) -> Sequence[str]: ...
    @property
    def kernels(self) -> Sequence[Any]: ...
    @property
    def traced(self) -> Sequence[Sequence[Any]]: ...


def trace_events(profile: TracedCalls) -> dict[str, Any]:
    """Return the trace: names of the process and its threads, then all events by time; enclosing events come first."""
    threads = sorted({span.thread for spans in profile.traced for span in spans} | {0})
    events = sorted((*calls(profile), *steps(profile), *live_bytes(profile)), key=lambda e: (e["ts"], -e.get("dur", 0.0)))
    return {"displayTimeUnit": "ns", "traceEvents": [*names(profile, threads), *events]}


def names(profile: TracedCalls, threads: list[int]) -> Iterator[Event]:
    """Yield the names of tracks, and their order."""
    yield metadata("process_name", 0, name=profile.name)
    for thread in threads:
        yield metadata("thread_name", thread, name=f"worker {thread}" if thread else CALLER)
        yield metadata("thread_sort_index", thread, sort_index=thread)


def metadata(name: str, thread: int, /, **args: Any) -> Event:
    return {"name": name, "ph": "M", "pid": PROCESS, "tid": tid(thread), "args": args}


def tid(thread: int) -> int:
    """Return the number of a thread's track. The track with the process's number is that of its first thread."""
    return PROCESS + thread


def calls(profile: TracedCalls) -> Iterator[Event]:
    """Yield each call, from the first step's beginning to the last one's end, on the caller's track."""
    for number, spans in enumerate(profile.traced):
        if spans:
            yield slice_of(f"call {number}", "call", spans[0].begin, max(s.end for s in spans), 0, {})


def steps(profile: TracedCalls) -> Iterator[Event]:
    kernels = {k.number: k for k in profile.kernels}
    for span in (span for spans in profile.traced for span in spans):
        kernel = kernels[span.kernel]
        args = {"rows": list(span.rows), "result": kernel.result, **({"at": str(kernel.position)} if kernel.position else {})}
        yield slice_of(f"{span.kernel} {kernel.origin}", "kernel", span.begin, span.end, span.thread, args)


def slice_of(name: str, category: str, begin: float, end: float, thread: int, args: dict[str, Any]) -> Event:
    return {"name": name, "cat": category, "ph": "X", "ts": begin / 1e3, "dur": (end - begin) / 1e3, "pid": PROCESS,
            "tid": tid(thread), "args": args}


def live_bytes(profile: TracedCalls) -> Iterator[Event]:
    """Yield the bytes live in each memory from the beginning of each step on, and none after a call."""
    for spans in profile.traced if profile.pools else ():
        yield from (counter(profile, span.begin, span.live) for span in spans)
        if spans:
            yield counter(profile, max(s.end for s in spans), (0,) * len(profile.pools))


def counter(profile: TracedCalls, at: float, held: tuple[int, ...]) -> Event:
    held_in = dict(zip(profile.pools, held, strict=True))
    return {"name": "live bytes", "ph": "C", "ts": at / 1e3, "pid": PROCESS, "args": held_in}
