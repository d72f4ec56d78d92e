"""What this thread works for. A worker that is about to block says so, and its queue has another thread do the work meanwhile:
operators may wait for operators that are still in line, however many of them do so at once. At the end of the program, what
waits for a value that nobody is left to give is woken.
"""
from __future__ import annotations

import threading
from _thread import LockType
from types import TracebackType
from typing import Protocol


class Crew(Protocol):
    """The threads of a queue."""

    def block(self, lock: LockType) -> None:
        """One of them is about to wait for a lock."""

    def unblock(self, lock: LockType) -> None:
        """It goes on."""


class _This(threading.local):
    crew: Crew | None = None


this = _This()
"""Of this thread: the crew that it belongs to."""


class blocked:
    """While this thread waits for a lock."""
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
