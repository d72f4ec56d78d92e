"""Machine code in memory: an `Image` from the linker or a cache, mapped so that it can be called.

An image is position-independent: references within it are relative. Its only external references are a few functions of the C
library, whose addresses are written into slots before the memory becomes executable; the memory is never writable and
executable at once.
"""
from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol


class Image(NamedTuple):
    """Code and its read-only data. `symbols` are the functions' offsets; `imports` names the C functions that it calls and the
    offset of the 8 bytes that hold each one's address. In the form "object" it is a relocatable object for LLVM's own loader,
    on systems for which tosaic does not link."""
    code: bytes
    symbols: Mapping[str, int] = {}
    imports: tuple[tuple[str, int], ...] = ()
    form: Literal["linked", "object"] = "linked"
    tiles: bool = False
    """True if the code uses the tiles of a matrix unit, which a process must request (`tiles.py`)."""
    functions: tuple[tuple[str, int, int], ...] = ()
    """All functions of a linked image, for profilers: name, offset, bytes."""

    def __repr__(self) -> str:
        return f"<{self.form} image of {len(self.code)} bytes with {', '.join(self.symbols)}>"


class LoadedCode(Protocol):
    """Code in this process."""

    def address(self, name: str) -> int:
        """Return the address of a function; 0 if there is none of that name."""

    def close(self) -> None:
        """Release the memory. No call may run in it any more."""


class MappedCode:
    """A linked image in this process, released by `close` or when it is dropped. No call may run in it by then. Raises OSError
    if the system does not let a process create code."""

    def __init__(self, image: Image) -> None:
        assert image.form == "linked"
        self._symbols = image.symbols
        self._memory = mmap.mmap(-1, len(image.code), prot=mmap.PROT_READ | mmap.PROT_WRITE,
                                 flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory[:] = image.code
        for name, offset in image.imports:
            self._memory[offset:offset + 8] = c_function(name).to_bytes(8, "little")
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        protect(self._base, len(image.code), mmap.PROT_READ | mmap.PROT_EXEC)
        if is_profiled():
            from .perf_map import process
            process.add(self._base, image.functions)

    def address(self, name: str) -> int:
        return self._base + self._symbols[name] if name in self._symbols else 0

    def close(self) -> None:
        self._memory.close()


def is_profiled() -> bool:
    """True if a profiler should see the names of functions: TOSAIC_PERF=1, or Python's own support of perf is on."""
    return os.environ.get("TOSAIC_PERF", "0") not in ("", "0") or "perf" in sys._xoptions or "PYTHONPERFSUPPORT" in os.environ


def is_debugged() -> bool:
    """True if a debugger should see code of this process with its lines: TOSAIC_DEBUG=1."""
    return os.environ.get("TOSAIC_DEBUG", "0") not in ("", "0")


def function_at(address: int) -> Callable[[int], int]:
    """Return the function i32(ptr) at an address, callable with an address; it runs without the interpreter's lock."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t)(address)


@functools.cache
def c_library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def c_function(name: str) -> int:
    """Return the address of a function of the C library."""
    return ctypes.cast(getattr(c_library(), name), ctypes.c_void_p).value or 0


def protect(address: int, nbytes: int, protection: int) -> None:
    call = c_library().mprotect
    call.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int
    if call(address, nbytes, protection):
        number = ctypes.get_errno()
        raise OSError(number, f"memory cannot be made executable: {os.strerror(number)}")
