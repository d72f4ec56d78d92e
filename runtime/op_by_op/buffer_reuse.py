"""Taking over the buffer of an argument for a result: allowed where nobody but the operation refers to it any more.

Python counts the references. An array that came from a client is read-only and never taken; a view that a client has of the
array keeps a reference to it, or to the array that owns its memory, so both are looked at.

The temporaries of Python's expressions on ready handles (`x * 2 + y * 3`) are not taken without `donate`. Their reference
counts are those of handles that are still wanted: an element of an array of objects, or a variable of compiled Python code, has
one reference, and the operator sees the same number. NumPy looks at the machine's stack to tell them apart; Python code cannot.
Where operations wait, the expression is over before they run, and its temporaries are taken like any other argument.
"""
from __future__ import annotations

import sys

import numpy as np

from ..arena import Array
from .handle import DonatedHandle, TensorHandle


def alone(arguments: list[TensorHandle], number: int) -> bool:
    """True if the argument's buffer is referred to by this handle alone, and the handle by this list alone (a donated one may
    have other references: it is invalid after its use)."""
    handle = arguments[number]
    if type(handle) is DonatedHandle:
        if sum(a is handle for a in arguments) > 1:
            return False
    elif sys.getrefcount(handle) > HANDLE:
        return False
    array = handle._array
    return array is not None and is_sole(array)


def is_sole(array: Array) -> bool:
    """True if the caller's variable and one slot are all that refers to an array and its memory."""
    if not array.flags.writeable or sys.getrefcount(array) > ARRAY:
        return False
    owner = array.base
    return owner is None or (type(owner) is np.ndarray and owner.base is None and sys.getrefcount(owner) <= OWNER)


def _counts() -> tuple[int, int, int]:
    """What `sys.getrefcount` says here, in this Python, of things that have only the references meant above."""
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
