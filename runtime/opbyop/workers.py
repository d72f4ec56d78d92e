"""What this thread works for. A worker that is about to block says so, and its queue has another thread do the work meanwhile:
operators may wait for operators that are still in line, however many of them do so at once.
"""
from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol


class Crew(Protocol):
    """The threads of a queue."""

    def block(self) -> None:
        """One of them is about to wait."""

    def unblock(self) -> None:
        """It goes on."""


class _This(threading.local):
    crew: Crew | None = None


this = _This()
"""Of this thread: the crew that it belongs to."""


class blocked:
    """While this thread waits."""
    __slots__ = ("crew",)

    def __enter__(self) -> None:
        self.crew = this.crew
        if self.crew is not None:
            self.crew.block()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.crew is not None:
            self.crew.unblock()
