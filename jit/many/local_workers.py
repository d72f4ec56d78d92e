"""Workers that are processes of this machine, each newly started rather than forked: a worker reads the function from a file,
and has a pipe to this process for items and outcomes. A worker that ends is replaced, and its items are given to others.
"""
from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from ...runtime.errors import temporary_file
from .workers import ATTEMPTS, Outcome, attempted

AHEAD = 2
"""Maximum number of items that a worker has: one that it runs, and one so that it need not wait for the next."""
GRACE = 5.0
"""Seconds that a worker has to end after its pipe is closed."""


class Worker:
    """A process, this process's end of its pipe, and its items by number."""

    def __init__(self, function: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.items: dict[int, Any] = {}
        self.process = context.Process(target=serve, args=(other, function), daemon=True)
        self.process.start()
        other.close()

    def start(self, number: int, item: Any) -> None:
        """Send an item. If the process has ended, the wait for its outcome detects that."""
        self.items[number] = item
        with suppress(OSError):
            self.connection.send((number, item))

    def stop(self) -> None:
        self.connection.close()

    def end(self) -> None:
        self.process.join(GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def serve(connection: Connection, path: str) -> None:
    """The main loop of a worker: run the function in a file on items until the pipe is closed."""
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the first decides when to end
    try:
        function, failure = attempted(loaded, path)
        while True:
            number, item = connection.recv()
            value, error = (None, failure) if function is None else attempted(function, item)
            connection.send((number, value, error))
    except (EOFError, OSError):
        return


def loaded(path: str) -> Callable[[Any], Any]:
    """Load the function from a file that this user's process has written for its workers."""
    with open(path, "rb") as file:
        function: Callable[[Any], Any] = pickle.load(file)
    return function


class LocalWorkers:
    """A number of processes of this machine, which run as long as a `run` does."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._workers: list[Worker] = []

    @property
    def description(self) -> str:
        return f"{self.count} process{'es' * (self.count != 1)}"

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run now."""
        return [w.process.pid for w in self._workers if w.process.pid is not None]

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._stop()

    def _stop(self) -> None:
        stopped, self._workers = self._workers, []
        for worker in stopped:
            worker.stop()
        for worker in stopped:
            worker.end()

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """`Workers.run`."""
        with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:  # a large model need not go through a pipe
            path = os.path.join(folder, "function")
            with temporary_file(), open(path, "wb") as file:
                pickle.dump(function, file)
            try:
                yield from LocalRun(path, items, self._workers, self.count).outcomes()
            finally:
                self._stop()


class LocalRun:
    """The items of one `run`: those to come, those to run again, and the number of workers that each has ended."""

    def __init__(self, function: str, items: Iterable[Any], workers: list[Worker], count: int) -> None:
        self.function, self.workers, self.count = function, workers, count
        self.coming = iter(enumerate(items))
        self.again: deque[tuple[int, Any]] = deque()
        self.ended: dict[int, int] = {}

    def outcomes(self) -> Iterator[Outcome]:
        while self.fill():
            ready = wait([w.connection for w in self.workers] + [w.process.sentinel for w in self.workers])
            for worker in list(self.workers):
                if worker.connection in ready:
                    yield from self.received(worker)
                elif worker.process.sentinel in ready:
                    yield from self.lost(worker)

    def fill(self) -> bool:
        """Give items to workers that have room; return whether any item is pending."""
        for depth in range(AHEAD):
            for worker in self.workers:
                if len(worker.items) <= depth and not self.start_next(worker):
                    break
        while len(self.workers) < self.count and (found := self.next()) is not None:
            self.workers.append(Worker(self.function))
            self.workers[-1].start(*found)
        return any(w.items for w in self.workers)

    def start_next(self, worker: Worker) -> bool:
        found = self.next()
        if found is not None:
            worker.start(*found)
        return found is not None

    def next(self) -> tuple[int, Any] | None:
        return self.again.popleft() if self.again else next(self.coming, None)

    def received(self, worker: Worker) -> Iterator[Outcome]:
        try:
            number, value, error = worker.connection.recv()
        except (EOFError, OSError):
            yield from self.lost(worker)
            return
        del worker.items[number]
        yield Outcome(number, value, error)

    def lost(self, worker: Worker) -> Iterator[Outcome]:
        """Queue all items of a worker that has ended again. The first of them is the one that it was running."""
        self.workers.remove(worker)
        worker.stop()
        worker.process.join()
        for place, (number, item) in enumerate(worker.items.items()):
            self.ended[number] = self.ended.get(number, 0) + (place == 0)
            if self.ended[number] >= ATTEMPTS:
                yield Outcome(number, error=f"{ATTEMPTS} processes that ran it ended, the last with {ending(worker.process)}")
            else:
                self.again.append((number, item))


def ending(process: Any) -> str:
    code = process.exitcode
    return f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
