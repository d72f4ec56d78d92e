"""The memory layout of CPython's and NumPy's objects, as far as generated code reads it: offsets in bytes, which are verified
on objects of this process before use.
"""
from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np

TYPE, HEAD = 8, 16
"""Offsets in every object: its type, and the first field after the header."""

DATA, RANK, EXTENTS, DTYPE, FLAGS = 16, 24, 32, 56, 64
"""Offsets in an ndarray: pointer to the data, number of dimensions (int32), pointer to the extents (int64), dtype, flags
(int32)."""

COUNT, ITEMS = 16, 24
"""Offsets in a tuple: the number of items, and the first item."""

EMPTY = 184
"""Index of `PyArray_Empty` in NumPy's table of functions, which its binary interface keeps."""

INTERFACES = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface (1.x and 2.x) that have this table."""

_word, _int = ctypes.c_size_t.from_address, ctypes.c_int32.from_address


@functools.cache
def is_known() -> bool:
    """True if the objects of this process have these offsets."""
    return is_plain_cpython() and all(map(array_is_known, arrays())) and tuple_is_known() and bool(empty_function())


def is_plain_cpython() -> bool:
    """True for CPython with 64 bits, the interpreter's lock, and reference counts before types."""
    if sys.version_info >= (3, 13):  # others have the lock, and need not import this
        import sysconfig
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return False
    return (sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8 and object.__basicsize__ == HEAD
            and hasattr(ctypes, "pythonapi"))


def arrays() -> list[np.ndarray[Any, Any]]:
    """Return arrays of several kinds."""
    base = np.zeros((3, 4), np.int32)
    fixed = np.zeros((2, 1, 5), np.float64)
    fixed.flags.writeable = False
    return [base, base[1:], base[:, 1], np.zeros((), np.float32), fixed, np.frombuffer(b"12345678", np.int8)[1:]]


def array_is_known(array: np.ndarray[Any, Any]) -> bool:
    """True if the fields of an array at the offsets agree with NumPy's own attributes."""
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
    """Return the address of NumPy's `PyArray_Empty`; 0 if its table is not as expected."""
    capsule = getattr(getattr(getattr(np, "_core", None), "_multiarray_umath", None), "_ARRAY_API", None)
    if capsule is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(capsule, None)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(_word(table).value)()
    return _word(table + 8 * EMPTY).value if version in INTERFACES else 0


def function_address(name: str) -> int:
    """Return the address of a function of CPython's C API."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
