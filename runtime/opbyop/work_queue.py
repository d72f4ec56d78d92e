"""The work queue: a bounded list of tasks and the threads that run them. Threads start when there is work, none before; a child
of `fork` has no threads of its parent's and starts its own.
"""
from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from .asynchronous import run_callbacks, unraisable


class Task(Protocol):
    """A piece of work."""

    def begin(self, _: object) -> object:
        """Do it."""


class WorkQueue:
    """Runs tasks on at most `threads` threads; at most `size` wait."""

    def __init__(self, threads: int, size: int) -> None:
        self.most, self.size = threads, size
        self.state = State()
        _live.add(self)
        self._close = weakref.finalize(self, State.close, self.state)
        self._close.atexit = False

    def add(self, task: Task) -> bool:
        """Hand a task over. False where the queue is full or shut down: then the caller runs it."""
        state = self.state
        with state.condition:
            if state.is_closed or len(state.tasks) >= self.size or not self.most:
                return False
            state.tasks.append(task)
            if state.idle >= len(state.tasks):
                state.condition.notify()
            elif len(state.threads) < self.most:
                self._start()
        return True

    def _start(self) -> None:
        thread = threading.Thread(target=work, args=(self.state,), name="tosaic op by op", daemon=True)
        self.state.threads.append(thread)
        thread.start()

    @property
    def threads(self) -> int:
        """How many threads there are now."""
        return len(self.state.threads)

    def __len__(self) -> int:
        return len(self.state.tasks)

    @staticmethod
    def is_worker() -> bool:
        """Whether this thread belongs to a queue."""
        return _worker.is_one

    def shutdown(self) -> None:
        """Take no more tasks, finish those that wait, end the threads."""
        self.state.close()
        for thread in list(self.state.threads):
            if thread is not threading.current_thread():
                thread.join()


class State:
    """What the threads of a queue share; they do not keep the queue itself alive."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.threads: list[threading.Thread] = []
        self.idle = 0
        self.is_closed = False
        self.condition = threading.Condition()

    def close(self) -> None:
        with self.condition:
            self.is_closed = True
            self.condition.notify_all()

    def take(self) -> Task | None:
        """The next task, as soon as there is one; None when the queue is closed and empty."""
        with self.condition:
            while not self.tasks:
                if self.is_closed:
                    return None
                self.idle += 1
                try:
                    self.condition.wait()
                finally:
                    self.idle -= 1
            return self.tasks.popleft()

    def after_fork(self) -> None:
        """In the child: its tasks are still there, its threads are not."""
        mine = threading.get_ident()
        self.condition = threading.Condition()
        self.threads = [t for t in self.threads if t.ident == mine]
        self.idle = 0


class _Worker(threading.local):
    is_one = False


_worker = _Worker()


@contextmanager
def as_worker() -> Iterator[None]:
    _worker.is_one = True
    try:
        yield
    finally:
        _worker.is_one = False


def work(state: State) -> None:
    """What a thread does."""
    with as_worker():
        while (task := state.take()) is not None:
            try:
                run_callbacks((task.begin,), None)
            except BaseException as error:  # SystemExit ends no thread that others count on
                unraisable(error, task.begin)
            del task


_live: weakref.WeakSet[WorkQueue] = weakref.WeakSet()
_held: list[threading.Condition] = []


def _before_fork() -> None:
    for queue in list(_live):
        queue.state.condition.acquire()
        _held.append(queue.state.condition)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    _held.clear()
    for queue in list(_live):
        queue.state.after_fork()
        if queue.state.tasks and not queue.state.threads and queue.most:
            queue._start()


@atexit.register
def _at_exit() -> None:
    for queue in list(_live):
        queue.shutdown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
