"""The regions of this thread that record operations instead of running them. The runtime only passes the operations to the
region, which decides what to do with them. Waiting for a region that this thread has yet to leave would never end, and is an
error instead.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import Problem

if TYPE_CHECKING:
    from .asynchronous import AsyncValue
    from .handler import OpInvocation


class Recorder(Protocol):
    """Takes operations that must not run now."""

    def record(self, invocation: OpInvocation) -> None:
        """Fill the invocation's results with pending handles, or errors."""


class _Active(threading.local):
    def __init__(self) -> None:
        self.recorders: list[tuple[Any, Recorder]] = []


_active = _Active()


def recording(runtime: Any) -> Recorder | None:
    """Return the innermost recorder of this thread for a runtime."""
    return next((r for of, r in reversed(_active.recorders) if of is runtime), None) if _active.recorders else None


def recorders() -> list[Recorder]:
    """Return the recorders of this thread, the innermost last."""
    return [r for _, r in _active.recorders]


def begin(runtime: Any, recorder: Recorder) -> None:
    """Pass this thread's operations to a recorder, until `end`."""
    _active.recorders.append((runtime, recorder))


def end() -> None:
    _active.recorders.pop()


def check_no_region(values: Sequence[AsyncValue]) -> None:
    """Raise a Problem if one of these values depends on a region that this thread is in: the thread would wait for itself."""
    open_regions = recorders()
    if open_regions and any(region in open_regions for region in sources_of(values)):
        from .location import caller_position
        raise Problem("this value is computed when the region that records it ends, and this thread is still in it",
                      caller_position(), kind="argument",
                      help="read it behind the `with` block, or compute what a decision needs before the region begins")


def sources_of(values: Sequence[AsyncValue]) -> list[Any]:
    """Return the known sources of pending values: regions, at the ends of chains of calls and copies."""
    from .asynchronous import AsyncValue, Waiting
    found, seen, stack = [], set(), list(values)
    while stack:
        state = stack.pop()._state
        if type(state) is not Waiting or id(state) in seen or (source := state.source) is None:
            continue
        seen.add(id(state))
        if isinstance(source, AsyncValue):
            stack.append(source)
        elif (inputs := getattr(source, "inputs_of_run", None)) is not None:
            stack.extend(inputs())
        else:
            found.append(source)
    return found
