"""The metadata of a tensor, known before its contents: dtype and shape. There is one object for each pair, so that a lookup of
a kernel by the metadata of its arguments only compares addresses.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..arena import Array
from ..arguments import MLIR_NAMES, dtype_of, tensor_text
from ..errors import printable

SHOWN = 100
"""Maximum number of characters of a value in a `repr`."""


def on_one_line(value: Any) -> str:
    """Return a value for a `repr`; of an array, its first and last numbers."""
    text = np.array2string(value, threshold=8, edgeitems=2) if isinstance(value, np.ndarray) else str(value)
    line = printable(" ".join(text.split()))
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."


class TensorMetadata:
    """Dtype and shape of a tensor. Equal metadata are the same object."""
    __slots__ = ("__weakref__", "dtype", "nbytes", "shape")
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int

    def __new__(cls, dtype: Any, shape: Sequence[int]) -> TensorMetadata:
        """`dtype` is NumPy's, or its name; `shape` a sequence of extents."""
        exact = dtype_of(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        key = exact, tuple(map(index, shape))
        return _known.get(key) or _known.setdefault(key, cls._new(*key))

    @classmethod
    def _new(cls, dtype: np.dtype[Any], shape: tuple[int, ...]) -> TensorMetadata:
        made = object.__new__(cls)
        made.dtype, made.shape, made.nbytes = dtype, shape, math.prod(shape) * dtype.itemsize
        return made

    @classmethod
    def of(cls, array: Array) -> TensorMetadata:
        """Return the metadata of an array."""
        return _known.get((array.dtype, array.shape)) or cls(array.dtype, array.shape)

    def __reduce__(self) -> Any:
        return TensorMetadata, (self.dtype, self.shape)

    def __str__(self) -> str:
        return tensor_text(self.shape, self.element)

    def __repr__(self) -> str:
        return f"TensorMetadata({self.dtype.name!r}, {self.shape})"

    @property
    def element(self) -> str:
        """MLIR's spelling of the dtype, or "string"."""
        return "string" if self.dtype.kind == "O" else MLIR_NAMES.get(self.dtype.name, self.dtype.name)

    @property
    def rank(self) -> int:
        return len(self.shape)


_known: WeakValueDictionary[tuple[np.dtype[Any], tuple[int, ...]], TensorMetadata] = WeakValueDictionary()
