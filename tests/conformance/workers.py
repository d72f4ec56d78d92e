"""Tests spread over processes. A test that crashes its process, or takes too long, is a failed test, and the rest goes on.

A worker tells the parent what it begins (`Begin`), and what came of it (`Record`); so the parent knows which test on
which engine a dead worker was at. The engines that the test still had before it are given to another worker.
"""
from __future__ import annotations

import faulthandler
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .judge import Record, Result, judge
from .reference import TIMEOUT
from .system import HERE, Engine, Machine, Subject

TASKS = 300
"""Tests that a worker does before a new one takes its place: so what a process keeps cannot grow for ever."""

Context = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Task:
    """A test, the engines to run it on, and the machine that native code is made for."""
    test: Path
    engines: tuple[Engine, ...]
    machine: Machine = HERE


@dataclass(frozen=True, slots=True)
class Begin:
    """A worker starts a step that should end within `seconds`."""
    engine: Engine
    step: str
    seconds: float


def serve(connection: Connection, timeout: float) -> None:
    """A worker: does the tasks that it is sent, until it is sent None. Where a run that takes too long hangs is printed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (task := connection.recv()) is not None:
        subject = Subject(task.test, machine=task.machine)
        for engine in task.engines:
            connection.send(Begin(engine, "run", timeout))
            faulthandler.dump_traceback_later(0.95 * timeout)
            run = subject.run(engine)
            faulthandler.cancel_dump_traceback_later()
            connection.send(Begin(engine, "verification", timeout + TIMEOUT))
            connection.send(judge(task.test, subject.desc, engine, run))
        connection.send(None)


class Worker:
    """A process, seen by its parent: its task, and until when it should be through with the step it is at."""

    def __init__(self, timeout: float) -> None:
        self.connection, other = Context.Pipe()
        self.process = Context.Process(target=serve, args=(other, timeout), daemon=True)
        self.process.start()
        other.close()
        self.timeout = timeout
        self.task: Task | None = None
        self.step = Begin("native", "start", timeout)
        self.deadline = 0.0
        self.done = 0

    def give(self, task: Task) -> None:
        self.task = task
        self.begin(Begin(task.engines[0], "start", self.timeout))
        self.done += 1
        self.connection.send(task)

    def begin(self, step: Begin) -> None:
        self.step, self.deadline = step, time.monotonic() + step.seconds

    def stop(self, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        else:
            self.connection.send(None)
        self.process.join()
        self.connection.close()

    def failed(self, why: str) -> tuple[Record, Task | None]:
        """The record of the step that it did not get through, and what is left of its task."""
        assert self.task is not None
        engines = self.task.engines
        left = engines[engines.index(self.step.engine) + 1:]
        record = Record(self.task.test, self.step.engine, Result.UNEXPECTED_FAILURE, f"{self.step.step}: {why}",
                        run_seconds=self.step.seconds - (self.deadline - time.monotonic()))
        return record, Task(self.task.test, left, self.task.machine) if left else None


def records(tasks: Iterable[Task], jobs: int, timeout: float) -> Iterator[Record]:
    """The records of all tasks, as they come."""
    queue = deque(tasks)
    workers = [Worker(timeout) for _ in range(min(jobs, len(queue)))]
    try:
        while workers:
            for number, worker in enumerate(workers):
                if worker.task is None and queue:
                    if worker.done >= TASKS:
                        worker.stop()
                        workers[number] = worker = Worker(timeout)
                    worker.give(queue.popleft())
            for worker in [w for w in workers if w.task is None]:
                worker.stop()
                workers.remove(worker)
            yield from progress(workers, queue, timeout)
    finally:
        for worker in workers:
            worker.stop(kill=True)


def progress(workers: list[Worker], queue: deque[Task], timeout: float) -> Iterator[Record]:
    """What the workers report next; dead and late ones are replaced."""
    if not workers:
        return
    patience = max(0.0, min(w.deadline for w in workers) - time.monotonic())
    ready = set(wait([w.connection for w in workers], patience))
    for number, worker in enumerate(workers):
        failure = None
        if worker.connection in ready:
            try:
                message: Any = worker.connection.recv()
            except (EOFError, ConnectionResetError):
                worker.process.join()
                failure = died(worker.process.exitcode)
            else:
                match message:
                    case Begin():
                        worker.begin(message)
                    case None:
                        worker.task = None
                    case record:
                        yield record
        elif time.monotonic() > worker.deadline:
            failure = f"takes more than {worker.step.seconds:.0f} s"
        if failure is not None:
            record, left = worker.failed(failure)
            worker.stop(kill=True)
            workers[number] = Worker(timeout)
            if left:
                queue.appendleft(left)
            yield record


def died(status: int | None) -> str:
    """What an exit status says."""
    name = signal.Signals(-status).name if status is not None and status < 0 else f"status {status}"
    return f"the process has died ({name})"
