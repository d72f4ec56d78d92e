"""Working memory of compiled code: arrays at aligned addresses, the frame of pointers that a program's driver reads, and
workspaces (an arena with its frame), one for each running call.
"""
from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64
"""Alignment, in bytes, of arenas, constants, variables and results: a cache line, and the widest vector."""

_DATA_OFFSET = object.__basicsize__
"""Offset, in bytes, of the data pointer in CPython's ndarray: the first field after the object header."""

_word = ctypes.c_size_t.from_address


def _address_by_field(array: Array) -> int:
    return _word(id(array) + _DATA_OFFSET).value


def _address_by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _field_is_right() -> bool:
    """True if the field holds the address, checked on arrays of several kinds."""
    base = np.zeros((3, 4), np.int32)
    return all(_address_by_field(a) == _address_by_interface(a)
               for a in (base, base[1:], base[1, 2:], np.zeros((), np.float64), np.frombuffer(b"12345678", np.int8)))


address = _address_by_field if _field_is_right() else _address_by_interface
"""The address of the first byte of an array's data. Ten times as fast as NumPy's own ways if the layout is known."""


PAGE = 4096
"""Distance in bytes at which addresses look alike to a processor that compares only their lower bits."""

BEHIND = 256
"""Distance in bytes below which a load follows a store too closely, if their addresses look alike."""


def empty(shape: Sequence[int], dtype: np.dtype[Any] | type[Any] | str, alignment: int = ALIGNMENT, offset: int = 0) -> Array:
    """Return an array at an address that is `offset` bytes above a multiple of `alignment`; its contents are undefined."""
    dtype = np.dtype(dtype)
    raw = np.empty(math.prod(shape) * dtype.itemsize + alignment, np.uint8)
    return np.ndarray(tuple(shape), dtype, raw, (offset - address(raw)) % alignment)


def without_store_conflicts(shape: Sequence[int], dtype: np.dtype[Any] | type[Any] | str, others: Iterable[int]) -> Array:
    """Return an array that can be written while arrays at the addresses `others` are read, element by element.

    A load waits for an earlier store whose address agrees with its own in the lower bits (on Intel's processors 12 of the
    virtual address, then 20 of the physical one), as if it read the stored value. If a result starts shortly after an input, by
    these bits, every load meets the store of the previous iteration, and a pass takes three times as long.
    """
    near = [a % PAGE for a in others]
    free = (p for p in range(0, PAGE, PAGE // 16) if not any(0 < (p - a) % PAGE < BEHIND for a in near))
    return empty(shape, dtype, PAGE, next(free, 0))


def copy(array: Array) -> Array:
    """Return a C-contiguous copy at an address that is a multiple of 64."""
    result = empty(array.shape, array.dtype)
    result[...] = array
    return result


def aligned(array: Array) -> Array:
    """Return the array itself if it is C-contiguous and starts at a multiple of 64, otherwise a copy that does."""
    return array if array.flags.c_contiguous and address(array) % ALIGNMENT == 0 else copy(array)


class Workspace:
    """An arena of `nbytes` bytes with a frame: `bound` pointers that each call sets, then pointers to the offsets `in_arena`,
    then the addresses `fixed`."""
    __slots__ = ("_pack", "arena", "frame", "frame_address", "taken")

    def __init__(self, nbytes: int, alignment: int, bound: int, in_arena: Iterable[int], fixed: Sequence[int]) -> None:
        self.arena = empty((max(nbytes, 1),), np.uint8, alignment)
        base = address(self.arena)
        pointers = [base + offset for offset in in_arena] + list(fixed)
        self.frame = (ctypes.c_size_t * max(bound + len(pointers), 1))(*[0] * bound, *pointers)
        self.frame_address = ctypes.addressof(self.frame)
        self.taken = ctypes.c_int64(0)
        """1 while a call uses the workspace."""
        self._pack = struct.Struct(f"{bound}{'Q' if ctypes.sizeof(ctypes.c_size_t) == 8 else 'I'}").pack_into

    def bind(self, pointers: Sequence[int]) -> None:
        """Set the pointers of this call."""
        self._pack(self.frame, 0, *pointers)
