"""The interrupt flag of the process: Ctrl-C sets it, and loops of compiled code look at it in each iteration, so that an
endless one ends. Its handler is native code (`lowering/native/process/interrupt_flag.py`).

A run that sees the flag ends as one that fails: no variable has changed. Then Python's handler of the signal runs, and what it
raises (KeyboardInterrupt, if nobody says otherwise) is what the call raises; where it raises nothing, the call runs again from
its beginning, as Python does with interrupted system calls. Only calls from the main thread look, because only there does
Python run handlers.
"""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Protocol

from .machine_code import Image

INTERRUPTED = -1
"""What a run returns that has seen the flag."""

FLAG, NEVER, MAIN, PREVIOUS, START = 0, 8, 16, 24, 32
"""Where things lie in the memory, in bytes: the flag; a byte that is never set, for threads that are not to look; the main
thread's number; the handler before ours; the function that says where a run looks."""

BYTES = 40

BEGIN = "interrupt.begin"
"""The name of that function: it takes the memory's address, and gives that of a byte in it."""

MEMORY = b"tosaic\x01\x5a"
"""Eight bytes of the code that stand for the memory's address."""


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
                for kept in (self, self.code):
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
                self.memory[START // 8] = self.code.address(BEGIN)
        return ctypes.addressof(self.memory)

    def handle(self) -> None:
        """Forget the flag and run Python's handlers; raises what they raise. A signal that comes now sets the flag again."""
        self.memory[FLAG] = 0
        ctypes.pythonapi.PyErr_CheckSignals()

    def after_fork(self) -> None:
        """In the child, whose only thread is its main one."""
        self.lock = threading.Lock()
        self.set_main(threading.get_ident())


process = Interrupts()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.after_fork)
