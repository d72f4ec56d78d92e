"""Memory that ends where no byte may be read or written: a step outside an array or an arena ends the process."""
from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from tosaic.lowering.graph.types import Array
from tosaic.runtime import executable
from tosaic.runtime.arena import Workspace, address

from ..fuzz.oracles import native

PAGE = mmap.PAGESIZE
FILL = 0xA5
can_fence = sys.platform == "linux"


def fenced(nbytes: int, alignment: int, at_end: bool = True) -> Array:
    """Bytes at the end (or the start) of pages between two that cannot be touched; up to `alignment` - 1 bytes that are no
    part of the array lie behind it."""
    pages = -(-max(nbytes, 1) // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    raw = np.frombuffer(memory, np.uint8)
    base = address(raw)
    for page in (0, pages + 1):
        fence(base + page * PAGE)
    raw = raw[PAGE:-PAGE]
    raw[:] = FILL
    start = (len(raw) - nbytes) // alignment * alignment if at_end else 0
    return raw[start:start + nbytes]


def fence(start: int) -> None:
    """Take all rights from one page."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(PAGE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")


class Fenced:
    """Arrays, each at the end of its pages; every second one at the start."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = tuple(self.place(a, n % 2 == 0) for n, a in enumerate(arrays))

    def place(self, array: Array, at_end: bool) -> Array:
        array = np.ascontiguousarray(array).reshape(array.shape)
        inside = fenced(array.nbytes, array.dtype.itemsize, at_end).view(array.dtype).reshape(array.shape)
        inside[...] = array
        return inside

    def check(self, what: str) -> None:
        """There is nothing to look at: a step outside would have ended the process."""


class FencedWorkspace(Workspace):
    """A workspace whose arena ends at a fence."""
    __slots__ = ()

    def __init__(self, nbytes: int, alignment: int, bound: int, in_arena: Iterable[int], fixed: Sequence[int]) -> None:
        offsets = list(in_arena)
        super().__init__(nbytes, alignment, bound, offsets, fixed)
        self.arena = fenced(max(nbytes, 1), alignment)
        base = address(self.arena)
        for number, offset in enumerate(offsets):
            self.frame[bound + number] = base + offset


@contextmanager
def fences() -> Iterator[None]:
    """Arrays and arenas of the oracle of native code are fenced."""
    before: Any = native.Guarded, executable.Workspace
    native.Guarded, executable.Workspace = Fenced, FencedWorkspace  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        native.Guarded, executable.Workspace = before  # type: ignore[misc]
