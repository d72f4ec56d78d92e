"""What a client sees of a tensor: an array that cannot be written, nor be made writable.

A read-only view of a NumPy array can be made writable again as long as the array behind it is. So there is none behind it, as
far as NumPy knows: the memory belongs to an object of ours that offers it for reading alone. That object refers to the array,
which is thereby seen to be in use (`buffer_reuse`).
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
    """The name of a dtype for NumPy; one that is not its own (bfloat16, the floats of 8 bits) as bytes without a meaning."""
    return dtype.str if dtype.isbuiltin != 2 else f"|V{dtype.itemsize}"


def read_only(array: Array) -> Array:
    """The same elements. Objects, which NumPy does not look at in foreign memory, are in an array of its own."""
    dtype = array.dtype
    if dtype.hasobject:
        copy = array.copy()
        copy.flags.writeable = False
        return copy
    seen: Array = np.asarray(ArrayMemory(array))
    return seen if seen.dtype is dtype or seen.dtype == dtype else seen.view(dtype)


def owner_of(array: Array) -> Any:
    """The array whose memory this one shows."""
    while array.base is not None:
        base: Any = array.base
        array = base._array if type(base) is ArrayMemory else base
        if not isinstance(array, np.ndarray):
            break
    return array
