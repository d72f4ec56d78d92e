"""Copies of arguments that native code cannot read in place: arrays in another byte order or with other strides, and lists of
numbers. A call copies them, as ONNX Runtime does; the type of an array's elements must be the input's in any case.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .arena import Array
from .errors import TypeProblem, ValueProblem

SAME_KIND = {"b": "b", "i": "iub", "u": "iub", "f": "fiub", "V": "fiub"}
"""Kinds of Python numbers that a list for elements of each kind may hold: those that lose at most digits."""


def in_native_order(array: Array) -> Array:
    """Return the array in this machine's byte order."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def readable(array: Array) -> Array:
    """Return the array, or a C-contiguous copy that begins at a multiple of its element's size."""
    return np.require(array, requirements=["C", "A"])


def from_list(what: str, value: list[Any], dtype: np.dtype[Any]) -> Array:
    """Return a list of numbers as an array of `dtype`. Raise a Problem that begins with `what` if its parts do not fit
    together, or a number cannot be represented in `dtype`."""
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise ValueProblem(f"{what} is a list whose parts have different shapes", kind="argument",
                           help="pass an array, or lists of one length at each depth") from None
    if not numbers.size:
        return np.empty(numbers.shape, dtype)
    if numbers.dtype.kind not in SAME_KIND.get(dtype.kind, ""):
        held = "objects" if numbers.dtype.kind == "O" else f"numbers of {numbers.dtype}"
        raise TypeProblem(f"{what} is a list of {held}, its elements are {dtype}", kind="argument",
                          help=f"pass numpy.asarray(..., dtype={dtype.name!r}), if that is meant")
    if dtype.kind in "iu" and not (np.iinfo(dtype).min <= numbers.min() and numbers.max() <= np.iinfo(dtype).max):
        raise ValueProblem(f"{what} is a list with a number that {dtype} does not hold", kind="argument",
                           help=f"{dtype} holds {np.iinfo(dtype).min} to {np.iinfo(dtype).max}")
    return numbers.astype(dtype)
