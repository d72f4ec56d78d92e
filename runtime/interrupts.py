"""Signals in loops of compiled code: Python's handler of a signal runs between two iterations, as it does between two
instructions of Python, and its exception ends the call. The native half is `lowering/native/process/interrupt_flag.py`.

A handler in C sets a flag and calls Python's own; each iteration of a loop checks the flag. If it is set, and once in a run
that takes long, the loop calls `Interrupts.look`, which runs Python's handlers. If one raises (by default KeyboardInterrupt for
Ctrl-C), the run fails: no variable has changed, and the call raises the exception. Otherwise the loop continues. Only calls
from the main thread check the flag, because Python runs handlers only there. A deadline of `limits`, if there is one, sets the
flag, too.
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
"""Status of a run that a signal handler ended."""

FLAG, NEVER, MAIN, PREVIOUS, START, LOOK, CALLED, API, ERROR = 0, 8, 16, 24, 32, 40, 48, 56, 88
"""Offsets in the memory, in bytes: the flag; a byte that is never set, for threads that must not check; the main thread's id;
Python's handler; the functions that begin a run and a check; the object that a check calls; functions of Python; the exception
of the handler that has ended a run: type, value, traceback."""

BYTES = 112

LATE = 0.01
"""Seconds after a deadline at which the flag is set: the deadline has passed when the run has ended."""

RUN_WORDS = 3
"""Words of 8 bytes that belong to each run, for `BEGIN` and `VISIT`; the first counts the iterations until the next check."""

BEGIN, VISIT, HANDLER = "interrupt.begin", "interrupt.look", "interrupt.handle"
"""Names of those functions, and of the handler that sets the flag."""

PYTHON_FUNCTIONS = "PyGILState_Ensure", "PyObject_CallObject", "PyErr_Fetch", "PyGILState_Release"
"""Functions of Python, in the order in which the memory holds them."""

MEMORY = b"tosaic\x01\x5a"
"""Eight bytes of the code that are replaced by the memory's address."""

LARGEST_ACTION = 256
"""Bytes for C's `struct sigaction`, which begins with the handler on every system; the largest, glibc's, has 152."""


class Loaded(Protocol):
    def address(self, name: str) -> int: ...


class Interrupts:
    """The flag, and its code. Memory and code are never released: a signal may arrive at any time."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_int64 * (BYTES // 8))()
        self.lock = threading.Lock()
        self.code: Loaded | None = None
        self.set_main(threading.main_thread().ident)

    def set_main(self, thread: int | None) -> None:
        self.memory[MAIN // 8] = ctypes.c_int64(thread or 0).value

    def bound(self, image: Image) -> Image:
        """Return the code with the address of this process's memory."""
        assert image.code.count(MEMORY) == 1, "the code of the interrupt flag has no place for its memory"
        return image._replace(code=image.code.replace(MEMORY, ctypes.addressof(self.memory).to_bytes(8, "little")))

    def words(self, load: Callable[[], Loaded]) -> int:
        """Return the memory's address; `load` loads the code on first use."""
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
        """Run Python's handlers of the signals that have arrived, and raise their exceptions. Later signals set the flag
        again."""
        self.memory[FLAG] = 0
        self.install()
        ctypes.pythonapi.PyErr_CheckSignals()
        checkpoint()

    @contextmanager
    def until_deadline(self) -> Iterator[None]:
        """End a run of the main thread in this context when the time of the limits is over, as by a signal."""
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
        """Set the flag, which the current or the next run sees."""
        self.memory[FLAG] = 1

    def install(self) -> None:
        """Install the handler that sets the flag in front of Python's, for every signal that has a handler in Python. Replace
        only Python's handler, because another library's may call ours; and repeat it each time, because `signal.signal`
        restores Python's."""
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
        """Raise the exception that has ended a run."""
        first = ERROR // 8
        found, self.memory[first:] = self.memory[first:], [0, 0, 0]
        ctypes.pythonapi.PyErr_Restore(*map(ctypes.c_void_p, found))

    def after_fork(self) -> None:
        """Reset the state in a forked child, whose only thread is its main one."""
        self.lock = threading.Lock()
        self.set_main(threading.get_ident())


def address_of_python(name: str) -> int:
    """Return the address of a function of Python's C API."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


process = Interrupts()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.after_fork)
