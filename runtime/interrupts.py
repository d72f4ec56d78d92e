"""Signals in loops of compiled code: Python's handler of a signal runs between two iterations, as it does between two
instructions of Python, and what it raises ends the call. The native half is `lowering/native/process/interrupt_flag.py`.

A handler in C sets a flag and goes on to Python's own; each iteration of a loop looks at the flag. Where it is set, and once in
a run that takes long, the loop calls `Interrupts.look`, which runs Python's handlers. If one raises (KeyboardInterrupt for
Ctrl-C, if nobody says otherwise), the run ends as one that fails: no variable has changed, and the call raises the exception.
Else the loop goes on. Only calls from the main thread look, because only there does Python run handlers. A deadline of `limits`
sets the flag, too, where one is asked for.
"""
from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from .limits import checkpoint, seconds_left
from .machine_code import Image

INTERRUPTED = -1
"""What a run returns that a handler has ended."""

FLAG, NEVER, MAIN, PREVIOUS, START, LOOK, CALLED, API, ERROR = 0, 8, 16, 24, 32, 40, 48, 56, 88
"""Where things lie in the memory, in bytes: the flag; a byte that is never set, for threads that are not to look; the main
thread's number; Python's handler; the functions with which a run and a look begin; the object that a look calls; functions of
Python; the exception of the handler that has ended a run: type, value, traceback."""

BYTES = 112

LATE = 0.01
"""Seconds after a deadline at which the flag is set: the deadline has passed when the run has ended."""

RUN_WORDS = 3
"""Words of 8 bytes that each run has of its own, for `BEGIN` and `VISIT`; the first counts the iterations until it looks."""

BEGIN, VISIT, HANDLER = "interrupt.begin", "interrupt.look", "interrupt.handle"
"""The names of those functions, and of the handler that sets the flag."""

PYTHON_FUNCTIONS = "PyGILState_Ensure", "PyObject_CallObject", "PyErr_Fetch", "PyGILState_Release"
"""Of Python, in their order in the memory."""

MEMORY = b"tosaic\x01\x5a"
"""Eight bytes of the code that stand for the memory's address."""

LARGEST_ACTION = 256
"""Bytes for C's `struct sigaction`, which begins with the handler on every system; the largest, glibc's, has 152."""


class Loaded(Protocol):
    def address(self, name: str) -> int: ...


class Interrupts:
    """The flag, and the code that belongs to it. Memory and code are never given back: a signal may come at any time."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_int64 * (BYTES // 8))()
        self.lock = threading.Lock()
        self.code: Loaded | None = None
        self.set_main(threading.main_thread().ident)

    def set_main(self, thread: int | None) -> None:
        self.memory[MAIN // 8] = ctypes.c_int64(thread or 0).value

    def bound(self, image: Image) -> Image:
        """The code with the address of this process's memory."""
        assert image.code.count(MEMORY) == 1, "the code of the interrupt flag has no place for its memory"
        return image._replace(code=image.code.replace(MEMORY, ctypes.addressof(self.memory).to_bytes(8, "little")))

    def words(self, load: Callable[[], Loaded]) -> int:
        """The memory's address; `load` gives the code when it is first wanted."""
        with self.lock:
            if self.code is None:
                self.code = load()
                look = self.look
                for kept in (self, self.code, look):
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
                functions = [address_of_python(name) for name in PYTHON_FUNCTIONS]
                self.memory[LOOK // 8: ERROR // 8] = [self.code.address(VISIT), id(look), *functions]
                self.memory[START // 8] = self.code.address(BEGIN)
        return ctypes.addressof(self.memory)

    def look(self) -> None:
        """Run Python's handlers of the signals that have come, and raise what they raise. A signal that comes from now on sets
        the flag."""
        self.memory[FLAG] = 0
        self.install()
        ctypes.pythonapi.PyErr_CheckSignals()
        checkpoint()

    @contextmanager
    def until_deadline(self) -> Iterator[None]:
        """A block in which a run of the main thread ends when the time that limits leave is over, as by a signal."""
        left = seconds_left()
        if left is None:
            yield
            return
        timer = threading.Timer(left + LATE, self.set)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def set(self) -> None:
        """Set the flag, which the next run or the one that goes on sees."""
        self.memory[FLAG] = 1

    def install(self) -> None:
        """Put the handler that sets the flag in front of Python's, for every signal that has a handler in Python. Only in its
        place, as another library's may call ours: and anew each time, as `signal.signal` puts Python's back."""
        assert self.code is not None
        ours, sigaction = self.code.address(HANDLER), ctypes.pythonapi.sigaction
        for number in filter(lambda n: callable(signal.getsignal(n)), signal.valid_signals()):
            action = (ctypes.c_int64 * (LARGEST_ACTION // 8))()
            sigaction(number, None, action)
            self.memory[PREVIOUS // 8] = self.memory[PREVIOUS // 8] or action[0]
            if action[0] == self.memory[PREVIOUS // 8]:
                action[0] = ours
                sigaction(number, action, None)

    def raise_error(self) -> None:
        """Raise what has ended a run."""
        first = ERROR // 8
        found, self.memory[first:] = self.memory[first:], [0, 0, 0]
        ctypes.pythonapi.PyErr_Restore(*map(ctypes.c_void_p, found))

    def after_fork(self) -> None:
        """In the child, whose only thread is its main one."""
        self.lock = threading.Lock()
        self.set_main(threading.get_ident())


def address_of_python(name: str) -> int:
    """Of a function of Python's interface for C."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


process = Interrupts()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.after_fork)
