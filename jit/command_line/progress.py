"""The progress line for work that takes longer than a second: only on a terminal, on standard error. Counted work (kernels,
trials, calls, processors, files) has a bar and the time that is left."""
from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from ...runtime.errors import printable
from ...runtime.progress import listening

DELAY = 1.0
"""Seconds before anything is shown."""


class Progress:
    """Shows `text` and the stages that the work reports while its block runs, after one second.

        with Progress("compiling"): ...
    """

    def __init__(self, text: str, delay: float = DELAY) -> None:
        self.text = text
        self._stage, self._done, self._total, self._detail = "", 0, 0, ""
        self._shown: Any = None
        self._is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._listening = ExitStack()

    def __enter__(self) -> Progress:
        if sys.stderr is not None and sys.stderr.isatty():
            self._listening.enter_context(listening(self._heard))
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._listening.close()
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown.stop()

    def update(self, text: str, done: int = 0, total: int = 0) -> None:
        """Show another text from now on; with a total, also the part of it that is done."""
        with self._lock:
            self.text = text
            self._stage, self._done, self._total, self._detail = "", done, total, ""
            self._draw()

    def _heard(self, depth: int, what: str, done: int, total: int) -> None:
        """Show a stage that the work reports: a count that is nested in no other gets the bar."""
        with self._lock:
            if depth == 0:
                self._stage, self._done, self._total, self._detail = what, done, total, ""
            elif depth == 1:
                self._detail = what
            self._draw()

    def _draw(self) -> None:
        if self._shown is not None:
            said = ", ".join(filter(None, (self.text, self._stage, self._detail)))
            self._shown.update(self._shown.task_ids[0], description=printable(said), completed=self._done,
                               total=self._total or None)

    def _show(self) -> None:
        from .progress_bar import bar
        with self._lock:
            if not self._is_over:
                self._shown = bar()
                self._shown.start()
                self._draw()
