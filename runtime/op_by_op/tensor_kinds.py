"""The kinds of tensors: dense ones of numbers, dense ones of strings, and scalar ones, whose elements are all one number.

All are arrays. A tensor of strings is an array of `bytes` objects; a scalar tensor is marked, by the object that owns its
memory, so that the views that handles return are also marked. Operations accept a scalar tensor wherever they accept a dense
one, and return dense ones.
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..arena import Array
from ..errors import TypeProblem
from .read_only import owner_of

STRINGS = np.dtype(object)
"""The dtype of a tensor of strings, whose elements are bytes."""


def is_strings(value: Any) -> bool:
    """True if a value is meant as a tensor of strings: a list that begins with text or bytes, or NumPy's arrays of them. A
    single text is not: it is considered a mistake."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is not None:
        return kind in "USO"
    first = value
    while isinstance(first, list | tuple) and first:
        first = first[0]
    return first is not value and isinstance(first, str | bytes)


def strings(value: Any) -> Array:
    """Return a tensor of strings from nested lists or an array of them; text becomes UTF-8."""
    array = np.array(value, STRINGS)
    flat = array.reshape(-1)
    for number, element in enumerate(flat):
        if not isinstance(element, str | bytes):
            raise TypeProblem(f"a tensor of strings has the element {element!r}", kind="argument",
                              help="all elements are text or bytes; tensors of numbers are arrays of one dtype")
        flat[number] = element.encode() if isinstance(element, str) else bytes(element)
    array.flags.writeable = False
    return array


class Scalars:
    """Marks on arrays, for the lifetime of the arrays."""

    def __init__(self) -> None:
        self._marked: dict[int, weakref.ref[Array]] = {}

    def make(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
        """Return an array for a scalar tensor; it is read-only, so that no result reuses its marked memory."""
        array = np.full(shape, value, dtype)
        array.flags.writeable = False
        key = id(array)
        self._marked[key] = weakref.ref(array, lambda _: self._marked.pop(key, None))
        return array

    def __contains__(self, array: Array) -> bool:
        owner = owner_of(array)
        marked = self._marked.get(id(owner))
        return marked is not None and marked() is owner


SCALARS = Scalars()
"""The scalar tensors of this process."""
