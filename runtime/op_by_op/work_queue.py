"""The work queue: a bounded list of tasks and the threads that run them. Threads start only when there is work; a child of
`fork` has none of its parent's threads and starts its own.
"""
from __future__ import annotations

import atexit
import os
import threading
import weakref
from _thread import LockType
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import Protocol

from .callbacks import join_spare, run_callbacks
from .reporting import unraisable
from .workers import this

PATIENCE = 0.5
"""Seconds without any progress, with all threads waiting for values, after which the end of a program wakes them."""


class Task(Protocol):
    """A piece of work."""

    def begin(self, _: object) -> object:
        """Run the task."""


class WorkQueue:
    """Runs tasks on at most `threads` threads, plus one for each thread that waits in a task for other tasks; at most `size`
    tasks are queued."""

    def __init__(self, threads: int, size: int) -> None:
        self.most, self.size = threads, size
        self.state = QueueState(threads)
        _live.add(self)
        self._close = weakref.finalize(self, QueueState.close, self.state)
        self._close.atexit = False

    def add(self, task: Task) -> bool:
        """Submit a task. Return False if the queue is full or shut down: then the caller runs it."""
        state = self.state
        with state.lock:
            if state.is_closed or state.tasks.qsize() >= self.size or not self.most:
                return False
            if not state.staff(state.tasks.qsize() + 1) and not state.threads:  # there can be no thread
                return False
            state.tasks.put(task)
        return True

    @property
    def threads(self) -> int:
        """Current number of threads."""
        return len(self.state.threads)

    def __len__(self) -> int:
        return self.state.tasks.qsize()

    @staticmethod
    def is_worker() -> bool:
        """True if this thread belongs to a queue."""
        return this.crew is not None

    def shutdown(self) -> None:
        """Refuse new tasks, finish the queued ones, end the threads."""
        self.state.close()
        for thread in self.others():
            thread.join()
        self.state.forget_wakes()

    def others(self) -> list[threading.Thread]:
        """Return the queue's threads except this one."""
        return [t for t in list(self.state.threads) if t is not threading.current_thread()]

    def end(self) -> None:
        """Shut the queue down at the end of the program. Threads that wait for a value that nobody will provide are woken."""
        self.state.close()
        while any(t.is_alive() for t in self.others()):
            before = self.state.taken
            for thread in self.others():
                thread.join(PATIENCE / max(1, len(self.others())))
            if self.state.taken == before and len(self.state.waits) >= sum(t.is_alive() for t in self.others()):
                self.state.wake()


class QueueState:
    """The state that the threads of a queue share; they do not keep the queue itself alive. Threads that wait in a task for
    other tasks, for the locks in `waits`, do not count. `taken` is the number of tasks that have begun; a task None tells one
    thread to check whether it must end.

    The list of tasks is implemented in C, so that Ctrl-C in a thread that adds a task leaves it consistent.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.tasks: SimpleQueue[Task | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.idle = self.taken = 0
        self.waits: set[LockType] = set()
        self.is_closed = False
        self.lock = threading.RLock()

    def staff(self, tasks: int) -> bool:
        """Provide a thread for the last of `tasks` tasks: an idle one, or a new one. Return False if no more threads can be
        started."""
        if self.idle >= tasks or len(self.threads) - len(self.waits) >= self.most:
            return True
        thread = threading.Thread(target=work, args=(self,), name="tosaic op by op", daemon=True)
        self.threads.append(thread)
        try:
            thread.start()
        except BaseException as error:
            if thread.ident is None:
                self.threads.remove(thread)
            if not isinstance(error, RuntimeError):
                raise
            return False  # no more threads
        return True

    def block(self, lock: LockType) -> None:
        """Note that a thread is about to wait in a task; queued and later tasks need another thread."""
        with self.lock:
            self.waits.add(lock)
            if waiting := self.tasks.qsize():
                self.staff(waiting)

    def unblock(self, lock: LockType) -> None:
        with self.lock:
            self.waits.discard(lock)
            if self.idle and self.is_surplus:
                self.tasks.put(None)

    def wake(self) -> None:
        """End the waits: their values are still pending, which is an error."""
        with self.lock:
            for lock in self.waits:
                if lock.locked():
                    lock.release()
            self.waits.clear()

    @property
    def is_surplus(self) -> bool:
        """True if there are more threads than allowed."""
        return len(self.threads) - len(self.waits) > self.most

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
            for _ in self.threads:
                self.tasks.put(None)

    def take(self) -> Task | None:
        """Wait for the next task, and return it; None if the thread must end: the queue is closed and empty, or another thread
        has returned from waiting."""
        while True:
            with self.lock:
                if self.is_closed:
                    return self.take_last()
                if self.is_surplus and not self.tasks.qsize():
                    self.threads.remove(threading.current_thread())
                    return None
                self.idle += 1
            task = self.tasks.get()
            with self.lock:
                self.idle -= 1
                if task is not None:
                    self.taken += 1
                    if not self.idle and not self.is_closed:
                        self.staff(1)  # so that the next task need not wait for a thread to start
                    return task

    def take_last(self) -> Task | None:
        """Return the next task of a closed queue without waiting; leave the entries that wake waiting threads in place."""
        task: Task | None = None
        for _ in range(self.tasks.qsize()):
            found = self.tasks.get_nowait()
            if found is not None and task is None:
                task = found
                self.taken += 1
            else:
                self.tasks.put(found)
        return task

    def forget_wakes(self) -> None:
        """Remove the entries that wake threads, as no thread is left."""
        with self.lock:
            for _ in range(self.tasks.qsize()):
                if (task := self.tasks.get_nowait()) is not None:
                    self.tasks.put(task)

    def after_fork(self) -> None:
        """Reset the state in a forked child: its tasks are still there, its threads are not."""
        mine = threading.get_ident()
        tasks, self.tasks, self.lock = self.tasks, SimpleQueue(), threading.RLock()
        while tasks.qsize():
            if (task := tasks.get_nowait()) is not None:
                self.tasks.put(task)
        self.threads = [t for t in self.threads if t.ident == mine]
        self.idle = 0
        self.waits = set()


def work(state: QueueState) -> None:
    """The main loop of a thread."""
    this.crew = state
    while (task := state.take()) is not None:
        try:
            run_callbacks((task.begin,), None)
        except BaseException as error:  # an interrupt must not end a thread that others rely on
            unraisable(error, task.begin)
        del task


_live: weakref.WeakSet[WorkQueue] = weakref.WeakSet()
_held: list[AbstractContextManager[object]] = []


def _before_fork() -> None:
    for queue in list(_live):
        queue.state.lock.__enter__()
        _held.append(queue.state.lock)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().__exit__(None, None, None)


def _after_fork_in_child() -> None:
    _held.clear()
    for queue in list(_live):
        queue.state.after_fork()
        if (waiting := len(queue)) and not queue.state.threads and queue.most:
            queue.state.staff(waiting)


@atexit.register
def _at_exit() -> None:
    for queue in list(_live):
        queue.end()
    join_spare()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
