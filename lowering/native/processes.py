"""Machine code of a large module by several processes: LLVM works in one thread at a time, so each part is the work of a fork
of this process, which sends the object back and ends. Where a part fails there, it is done here.
"""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence

LINES_OF_A_PART = 3000
"""A part with fewer takes LLVM less time than pays for a process."""
Compile = Callable[[str], bytes]


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def parts_of(text: str) -> int:
    """In how many parts to compile a text: one where this system cannot fork while libraries have threads."""
    if not sys.platform.startswith("linux"):
        return 1
    return max(1, min(processors(), text.count("\n") // LINES_OF_A_PART))


def compiled(texts: Sequence[str], compile: Compile) -> list[bytes]:
    """The objects of these modules, each made by a process; the first by this one."""
    children = [start(text, compile) for text in texts[1:]]
    try:
        objects = [compile(texts[0])]
    finally:
        received = [finish(*child) for child in children]
    return objects + [code or compile(text) for code, text in zip(received, texts[1:])]


def start(text: str, compile: Compile) -> tuple[int, int]:
    """A process that compiles the text: its number, and the pipe that the object comes from."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other threads; the child runs LLVM and nothing else
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(compile(text))
        status = 0
    finally:
        os._exit(status)


def finish(child: int, reading: int) -> bytes:
    """The object that a process has made; empty where it failed."""
    with os.fdopen(reading, "rb") as pipe:
        code = pipe.read()
    _, status = os.waitpid(child, 0)
    return code if status == 0 else b""
