"""The threads of this process that compiled programs may use: their number, and the pool itself, whose code is native
(`lowering/native/process/thread_pool.py`).

The pool starts its threads when the first job needs them. A child of `fork` has none of its parent's threads, and starts its
own. Only one job runs at a time: if several Python threads call at the same time, one uses the pool and the others run their
jobs by themselves. Results do not depend on any of this: they are bitwise equal for every number of threads.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .arena import address, empty
from .errors import ValueProblem
from .public_names import public

MOST = 64
"""Maximum number of threads of a program; one of the pool's words has a bit for each task of a job."""

POOL_BYTES = 4096
SPIN_WORD, SPIN = 52, 4000
"""Index of the word of a pool's memory with the number of times that an idle worker looks for work before it sleeps, and that
number: for about 100 microseconds, so that the worker is awake between the steps of a program, and between calls that follow
each other."""

VARIABLE = "TOSAIC_NUM_THREADS"


class PoolCode(NamedTuple):
    """Addresses of the pool's functions; `kept` must live as long as they may run."""
    parallel: int
    stop: int
    kept: Any


class ThreadPool:
    """The pool of a process. Its memory and its code are never released, because threads run there."""

    def __init__(self, code: PoolCode) -> None:
        self.code, self.most = code, MOST
        self.memory = empty((POOL_BYTES,), np.uint8)
        self.words = self.memory.view(np.int32)
        self.views: dict[int, np.ndarray[Any, np.dtype[np.int64]]] = {}
        for kept in (self, code.kept):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first job, without threads."""
        self.memory[:] = 0
        self.words[SPIN_WORD] = SPIN

    def of(self, threads: int) -> int:
        """Return the address of the structure that a program receives for `threads` threads: the function, its first argument,
        and the data to which that points."""
        view = self.views.get(threads)
        if view is None:
            view = np.array([self.code.parallel, 0, address(self.memory), min(threads, self.most)], np.int64)
            view[1] = view.ctypes.data + 16
            view = self.views.setdefault(threads, view)
        return view.ctypes.data

    def limit(self, most: int) -> None:
        """Let no program use more threads than that, whatever its structure says."""
        self.most = most
        for threads, view in self.views.items():
            view[3] = min(threads, most)

    @property
    def started(self) -> int:
        """Number of running threads besides those of the program."""
        return int(self.words[49])

    def stop(self) -> None:
        """End the threads; jobs run serially from now on."""
        ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t)(self.code.stop)(address(self.memory))


class Threads:
    """The number of threads that programs of this process use, and its pool."""

    def __init__(self) -> None:
        self.pool: ThreadPool | None = None
        self.lock = threading.Lock()
        self.number: int | None = None
        self.most = MOST

    def set(self, number: int) -> None:
        """Use `number` threads, and no more, from now on."""
        with self.lock:
            self.number = self.most = number
            if self.pool is not None:
                self.pool.limit(number)

    def count(self) -> int:
        """Return the number that was set, otherwise that of the environment, otherwise 1."""
        if self.number is None:
            self.number = of_environment(os.environ.get(VARIABLE))
        return self.number

    def structure(self, code: Callable[[], PoolCode | None], most: int) -> int:
        """Return the address of the structure for a program with steps in `most` tasks; 0 if there is no pool."""
        with self.lock:
            if self.pool is None and (found := code()) is not None:
                self.pool = ThreadPool(found)
                self.pool.limit(self.most)
                atexit.register(self.pool.stop)
        return 0 if self.pool is None or most < 2 else self.pool.of(most)

    def after_fork(self) -> None:
        """Reset the state in a forked child: the parent's threads do not exist."""
        self.lock = threading.Lock()
        if self.pool is not None:
            self.pool.reset()


process = Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.after_fork)


def checked(number: Any) -> int:
    """Return a number of threads; raise a Problem if it is none."""
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MOST:
        raise ValueProblem(f"the number of threads is {number!r}", kind="option", help=f"it may be 1 to {MOST}")
    return number


def of_environment(text: str | None) -> int:
    if not text:
        return 1
    if not text.strip().isdigit():
        raise ValueProblem(f"{VARIABLE} is {text!r}", kind="option", help=f"it may be 1 to {MOST}")
    return checked(int(text))


@public("tosaic.set_num_threads")
def set_num_threads(number: int) -> None:
    """Let calls use at most `number` threads from now on, and compile functions for that many (unless their options say
    otherwise). 1, which is the default, compiles code and memory plans without threads."""
    process.set(checked(number))


@public("tosaic.get_num_threads")
def get_num_threads() -> int:
    """Return the number of threads for which functions are compiled now: the number that was set, or the environment variable
    TOSAIC_NUM_THREADS, or 1."""
    return process.count()
