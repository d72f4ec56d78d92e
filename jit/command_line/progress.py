"""A line that says what is going on, for what takes longer than a second: only on a terminal, on standard error."""
from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

from ...runtime.errors import printable

DELAY = 1.0
"""Seconds before anything is shown."""


class Progress:
    """Shows `text` while its block runs, from a second on.

        with Progress("compiling"): ...
    """

    def __init__(self, text: str, delay: float = DELAY) -> None:
        self.text = text
        self._status: Any = None
        self._is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._status is not None:
                self._status.stop()

    def update(self, text: str) -> None:
        """Say something else from now on."""
        with self._lock:
            self.text = text
            if self._status is not None:
                self._status.update(shown(text))

    def _show(self) -> None:
        from rich.console import Console
        with self._lock:
            if not self._is_over:
                self._status = Console(stderr=True).status(shown(self.text))
                self._status.start()


def shown(text: str) -> Any:
    """Text on one line, as rich takes it: without markup, and without anything that drives the terminal."""
    from rich.text import Text
    return Text(printable(text))
