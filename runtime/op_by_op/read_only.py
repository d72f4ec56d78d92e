"""The client's view of a tensor: an array that cannot be written, nor be made writable.

A read-only view of a NumPy array can be made writable again if its base array is writable. The view here has no base array that
NumPy knows: the memory belongs to an object of this module that exports it read-only. That object refers to the array, whose
reference count thus shows that it is in use (`buffer_reuse`).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arena import Array, address


class ArrayMemory:
    """The memory of an array, for NumPy to read."""
    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: Array) -> None:
        self._array = array
        self.__array_interface__ = {"data": (address(array), True), "shape": array.shape, "strides": array.strides,
                                    "typestr": typestr(array.dtype), "version": 3}


def typestr(dtype: np.dtype[Any]) -> str:
    """Return NumPy's name of a dtype; that of a dtype that is not its own (bfloat16, the floats of 8 bits) as untyped bytes."""
    return dtype.str if dtype.isbuiltin != 2 else f"|V{dtype.itemsize}"


def read_only(array: Array) -> Array:
    """Return a read-only array with the same elements. Objects, which NumPy does not read from foreign memory, are copied."""
    dtype = array.dtype
    if dtype.hasobject:
        copy = array.copy()
        copy.flags.writeable = False
        return copy
    seen: Array = np.asarray(ArrayMemory(array))
    return seen if seen.dtype is dtype or seen.dtype == dtype else seen.view(dtype)


def owner_of(array: Array) -> Any:
    """Return the array whose memory this one views."""
    while array.base is not None:
        base: Any = array.base
        array = base._array if type(base) is ArrayMemory else base
        if not isinstance(array, np.ndarray):
            break
    return array
