"""The work queue to which this thread belongs. A worker that is about to block announces it, and its queue provides another
thread meanwhile: operators may wait for queued operators, however many of them do so at the same time. At the end of the
program, threads that wait for a value that nobody will provide are woken.
"""
from __future__ import annotations

import threading
from _thread import LockType
from types import TracebackType
from typing import Protocol


class Crew(Protocol):
    """The threads of a queue."""

    def block(self, lock: LockType) -> None:
        """Note that a thread is about to wait for a lock."""

    def unblock(self, lock: LockType) -> None:
        """Note that a thread continues."""


class _This(threading.local):
    crew: Crew | None = None


this = _This()
"""State of this thread: the crew that it belongs to."""


class blocked:
    """A context in which this thread waits for a lock."""
    __slots__ = ("crew", "lock")

    def __init__(self, lock: LockType) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        self.crew = this.crew
        if self.crew is not None:
            self.crew.block(self.lock)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.crew is not None:
            self.crew.unblock(self.lock)
