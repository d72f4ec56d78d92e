"""Which region of this thread records operations instead of running them. What it does with them is its own affair: the runtime
only hands them over.
"""
from __future__ import annotations

import threading
from typing import Any, Protocol

from .handler import OpInvocation


class Recorder(Protocol):
    """Takes operations that are not to be run now."""

    def record(self, invocation: OpInvocation) -> None:
        """Fill the invocation's results with handles that are pending, or errors."""


class _Active(threading.local):
    def __init__(self) -> None:
        self.recorders: list[tuple[Any, Recorder]] = []


_active = _Active()


def recording(runtime: Any) -> Recorder | None:
    """The innermost recorder of this thread for a runtime."""
    return next((r for of, r in reversed(_active.recorders) if of is runtime), None) if _active.recorders else None


def begin(runtime: Any, recorder: Recorder) -> None:
    """Hand this thread's operations to a recorder, until `end`."""
    _active.recorders.append((runtime, recorder))


def end() -> None:
    _active.recorders.pop()
