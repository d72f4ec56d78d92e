"""How CPython and NumPy lay their objects out in memory, as far as code made at run time reads it: offsets in bytes, found
right by looking at objects of this process, or not used at all.
"""
from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np

TYPE, HEAD = 8, 16
"""Of every object: its type; the first field behind the head."""

DATA, RANK, EXTENTS, DTYPE, FLAGS = 16, 24, 32, 56, 64
"""Of an ndarray: pointer to the data, number of dimensions (int32), pointer to the extents (int64), dtype, flags (int32)."""

COUNT, ITEMS = 16, 24
"""Of a tuple."""

EMPTY = 184
"""Place of `PyArray_Empty` in NumPy's table of functions, which its binary interface keeps."""

INTERFACES = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface (1.x and 2.x) that have this table."""

_word, _int = ctypes.c_size_t.from_address, ctypes.c_int32.from_address


@functools.cache
def is_known() -> bool:
    """True if objects of this process lie as the offsets say."""
    return is_plain_cpython() and all(map(array_is_known, arrays())) and tuple_is_known() and bool(empty_function())


def is_plain_cpython() -> bool:
    """64 bits, with the interpreter's lock, reference counts in front of types."""
    if sys.version_info >= (3, 13):  # others have the lock, and need not import this
        import sysconfig
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return False
    return (sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8 and object.__basicsize__ == HEAD
            and hasattr(ctypes, "pythonapi"))


def arrays() -> list[np.ndarray[Any, Any]]:
    """Arrays of several kinds."""
    base = np.zeros((3, 4), np.int32)
    fixed = np.zeros((2, 1, 5), np.float64)
    fixed.flags.writeable = False
    return [base, base[1:], base[:, 1], np.zeros((), np.float32), fixed, np.frombuffer(b"12345678", np.int8)[1:]]


def array_is_known(array: np.ndarray[Any, Any]) -> bool:
    """True if NumPy itself says of an array what lies at the offsets."""
    at, extents = id(array), _word(id(array) + EXTENTS).value
    return (_word(at + TYPE).value == id(np.ndarray) and _word(at + DATA).value == array.__array_interface__["data"][0]
            and _int(at + RANK).value == array.ndim and _word(at + DTYPE).value == id(array.dtype)
            and tuple(_word(extents + 8 * i).value for i in range(array.ndim)) == array.shape
            and _int(at + FLAGS).value & 0xFFFF == array.flags.num & 0xFFFF)


def tuple_is_known() -> bool:
    items = (object(), "a", 3)
    at = id(items)
    return (_word(at + TYPE).value == id(tuple) and _word(at + COUNT).value == 3
            and [_word(at + ITEMS + 8 * i).value for i in range(3)] == list(map(id, items)))


@functools.cache
def empty_function() -> int:
    """The address of NumPy's `PyArray_Empty`; 0 where its table is not as expected."""
    capsule = getattr(getattr(getattr(np, "_core", None), "_multiarray_umath", None), "_ARRAY_API", None)
    if capsule is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(capsule, None)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(_word(table).value)()
    return _word(table + 8 * EMPTY).value if version in INTERFACES else 0


def function_address(name: str) -> int:
    """The address of a function of CPython's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
