"""The work that a kernel program's asynchronous kernels leave for later: done by the thread that waits for the program.

One thread in one order, so that what a program prints does not depend on chance. The runtime's own threads may settle values, too.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ....runtime.errors import Problem
from ....runtime.opbyop.asynchronous import AsyncValue


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of work, and what a cancellation does instead."""
    run: Callable[[], object]
    cancel: Callable[[Problem], object]


class Work:
    """Tasks in line, and how many values are pending."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.open = 0
        self.condition = threading.Condition()

    def add(self, run: Callable[[], object], cancel: Callable[[Problem], object]) -> None:
        with self.condition:
            self.tasks.append(Task(run, cancel))
            self.condition.notify()

    def track(self, value: AsyncValue) -> None:
        """Let `finish` wait for a value, too."""
        if value.is_pending:
            with self.condition:
                self.open += 1
            value.then(self._closed)

    def _closed(self, _: object) -> None:
        with self.condition:
            self.open -= 1
            self.condition.notify()

    def finish(self) -> None:
        """Do all tasks, those that come up meanwhile, too, until no value is pending."""
        while True:
            with self.condition:
                while not self.tasks and self.open:
                    self.condition.wait()
                if not self.tasks:
                    return
                task = self.tasks.popleft()
            task.run()

    def finish_tasks(self) -> None:
        """Do the tasks that are in line, and those that they bring."""
        while True:
            with self.condition:
                if not self.tasks:
                    return
                task = self.tasks.popleft()
            task.run()

    def cancel(self, error: Problem) -> None:
        """Give up all tasks."""
        with self.condition:
            given_up = list(self.tasks)
            self.tasks.clear()
        for task in given_up:
            task.cancel(error)
