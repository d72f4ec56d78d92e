"""The compilation of a large module by several processes. LLVM works in one thread at a time, so a fork of this process
compiles each part of the module, sends the object back and ends. If a fork fails, this process compiles its part.
"""
from __future__ import annotations

import os
import select
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

LINES_OF_A_MODULE = 3000
"""Minimum number of lines of a module: LLVM compiles fewer in less time than a process costs."""
Compile = Callable[[str], bytes]
LENGTH = struct.Struct("<Q")


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def module_count(text: str) -> int:
    """Return the number of modules to compile a text as: one if this system cannot fork while libraries have threads."""
    if not can_fork():
        return 1
    return max(1, min(processors(), text.count("\n") // LINES_OF_A_MODULE))


def compiled(texts: Sequence[str], compile: Compile) -> list[bytes]:
    """Return the objects of these modules, each made by a process; the first by this one."""
    children = [start(text, compile) for text in texts[1:]]
    try:
        objects = [compile(texts[0])]
    finally:
        received = [finish(*child) for child in children]
    return objects + [code or compile(text) for code, text in zip(received, texts[1:])]


def forked() -> int:
    """Call `os.fork`: the child runs LLVM and nothing else, so the state of other threads does not matter to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def start(text: str, compile: Compile) -> tuple[int, int]:
    """Start a process that compiles the text; return its number, and the pipe that delivers the object."""
    reading, writing = os.pipe()
    child = forked()
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
    """Return the object that a process has made; empty if it failed."""
    with os.fdopen(reading, "rb") as pipe:
        code = pipe.read()
    _, status = os.waitpid(child, 0)
    return code if status == 0 else b""


def can_fork() -> bool:
    """True if this system can fork while libraries have threads."""
    return sys.platform.startswith("linux")


def within(seconds: float, text: str, compile: Compile) -> bytes:
    """Return the object that another process makes of a text in that time; empty if it fails or exceeds the time."""
    child, reading = start(text, compile)
    end, parts = time.monotonic() + seconds, list[bytes]()
    try:
        while select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            part = os.read(reading, 1 << 20)
            if not part:
                _, status = os.waitpid(child, 0)
                child = 0
                return b"".join(parts) if status == 0 else b""
            parts.append(part)
        return b""
    finally:
        os.close(reading)
        if child:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


class Worker:
    """A fork of this process, as it is at the fork, that compiles one text after the other."""

    def __init__(self, compile: Compile) -> None:
        (texts, to_worker), (from_worker, objects) = os.pipe(), os.pipe()
        self.number = forked()
        if not self.number:
            try:
                os.close(to_worker)
                os.close(from_worker)
                serve(compile, os.fdopen(texts, "rb"), os.fdopen(objects, "wb"))
            finally:
                os._exit(0)
        os.close(texts)
        os.close(objects)
        self._texts, self._objects = os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb")
        self._lock = threading.Lock()

    def compiled(self, text: str) -> bytes:
        """Return the object of a module; empty if the process cannot make it, or has ended."""
        with self._lock, suppress(OSError, ValueError):
            send(self._texts, text.encode())
            return received(self._objects)
        return b""

    def end(self) -> None:
        """Kill the process, whatever it does."""
        with suppress(OSError):
            os.kill(self.number, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(self.number, 0)
        with self._lock:
            for pipe in (self._texts, self._objects):
                with suppress(OSError):
                    pipe.close()


def serve(compile: Compile, texts: IO[bytes], objects: IO[bytes]) -> None:
    """Serve as a worker until nobody writes to it any more."""
    while text := received(texts):
        send(objects, compile(text.decode()))


def send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(LENGTH.pack(len(data)) + data)
    pipe.flush()


def received(pipe: IO[bytes]) -> bytes:
    """Return the data that `send` sent; empty if the other end is closed."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return b""
    length, = LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else b""
