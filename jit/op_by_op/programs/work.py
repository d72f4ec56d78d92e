"""The deferred work of a kernel program's asynchronous kernels: done by the thread that waits for the program.

One thread runs the tasks in one order, so that a program's output does not depend on chance. The runtime's own threads may
settle values, too.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....runtime.errors import Problem
from ....runtime.op_by_op.asynchronous import AsyncValue


@dataclass(frozen=True, slots=True)
class ProgramTask:
    """A piece of work, and the action of a cancellation in its place."""
    run: Callable[[], object]
    cancel: Callable[[Problem], object]


class Work:
    """A queue of tasks, and the number of pending values."""

    def __init__(self) -> None:
        self.tasks: deque[ProgramTask] = deque()
        self.open = 0
        self.condition = threading.Condition()

    def add(self, run: Callable[[], object], cancel: Callable[[Problem], object]) -> None:
        with self.condition:
            self.tasks.append(ProgramTask(run, cancel))
            self.condition.notify()

    def track(self, value: AsyncValue) -> None:
        """Make `finish` wait for a value, too."""
        if value.is_pending:
            with self.condition:
                self.open += 1
            value.then(self._closed)

    def _closed(self, _: object) -> None:
        with self.condition:
            self.open -= 1
            self.condition.notify_all()

    def finish(self) -> None:
        """Do all tasks, including those added meanwhile, until no value is pending."""
        self._work(lambda: self.open > 0)

    def settle(self, values: Sequence[AsyncValue]) -> None:
        """Do tasks until these values are settled."""
        for value in values:
            value.then(self._wake)
        while any(v.is_pending for v in values):
            self._work(lambda: any(v.is_pending for v in values), one=True)

    def _wake(self, _: object) -> None:
        with self.condition:
            self.condition.notify_all()

    def _work(self, is_needed: Callable[[], bool], one: bool = False) -> None:
        """Do the queued tasks, and wait for more as long as that is needed; with `one` at most one."""
        while True:
            with self.condition:
                while not self.tasks and is_needed():
                    self.condition.wait()
                if not self.tasks:
                    return
                task = self.tasks.popleft()
            task.run()
            if one:
                return

    def cancel(self, error: Problem) -> None:
        """Cancel all tasks."""
        with self.condition:
            given_up = list(self.tasks)
            self.tasks.clear()
        for task in given_up:
            task.cancel(error)
