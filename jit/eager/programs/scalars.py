"""Which arrays stand for scalar tensors: tensors whose elements are all one number, which print and add as such.

An array is known by the object that owns its memory, so that views of it, as handles give them, count as well.
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ....lowering.graph.types import Array
from ....runtime.opbyop.read_only import owner_of


class Scalars:
    """Marks on arrays, as long as these live."""

    def __init__(self) -> None:
        self._marked: dict[int, weakref.ref[Array]] = {}

    def make(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
        """An array that stands for a scalar tensor; it cannot be written, so that no result is put where the mark is."""
        array = np.full(shape, value, dtype)
        array.flags.writeable = False
        key = id(array)
        self._marked[key] = weakref.ref(array, lambda _: self._marked.pop(key, None))
        return array

    def __contains__(self, array: Array) -> bool:
        owner = owner_of(array)
        marked = self._marked.get(id(owner))
        return marked is not None and marked() is owner
