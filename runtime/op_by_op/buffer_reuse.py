"""Reuse of an argument's buffer for a result: allowed if only the operation still refers to it.

Python's reference counts decide. An array from a client is read-only and never reused; a view that a client has of the array
holds a reference to it, or to the array that owns its memory, so both counts are checked.

The temporaries of Python's expressions on ready handles (`x * 2 + y * 3`) are not reused without `donate`. They have the same
reference counts as handles that are still needed: an element of an array of objects, or a variable of compiled Python code, has
one reference, and the operator sees the same number. NumPy inspects the machine's stack to distinguish them; Python code
cannot. If operations wait, the expression is over before they run, and its temporaries are reused like any other argument.
"""
from __future__ import annotations

import sys

import numpy as np

from ..arena import Array
from .handle import DonatedHandle, TensorHandle


def alone(arguments: list[TensorHandle], number: int) -> bool:
    """True if only this handle refers to the argument's buffer, and only this list to the handle (a donated handle may have
    other references: it is invalid after its use)."""
    handle = arguments[number]
    if type(handle) is DonatedHandle:
        if sum(a is handle for a in arguments) > 1:
            return False
    elif sys.getrefcount(handle) > HANDLE:
        return False
    array = handle._array
    return array is not None and is_sole(array)


def is_sole(array: Array) -> bool:
    """True if only the caller's variable and one slot refer to an array and its memory."""
    if not array.flags.writeable or sys.getrefcount(array) > ARRAY:
        return False
    owner = array.base
    return owner is None or (type(owner) is np.ndarray and owner.base is None and sys.getrefcount(owner) <= OWNER)


def _counts() -> tuple[int, int, int]:
    """Measure `sys.getrefcount`, in this Python, for a handle, an array and an owner with only the references described
    above."""
    handles = [TensorHandle(None, None, np.empty((1,)))]
    return _of_handle(handles), _of_array(handles), 3


def _of_handle(arguments: list[TensorHandle]) -> int:
    handle = arguments[0]
    return sys.getrefcount(handle)


def _of_array(arguments: list[TensorHandle]) -> int:
    array = arguments[0]._array
    assert array is not None
    return _passed(array)


def _passed(array: Array) -> int:
    return sys.getrefcount(array)


HANDLE, ARRAY, OWNER = _counts()
