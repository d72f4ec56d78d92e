"""Variables of a library that this process has loaded: the memory of those that a C object holds in it
(`lowering/native/c_object`), found by their symbols. A `Context` with the library uses that memory.
"""
from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from .arena import Array
from .arguments import Tensor
from .c_symbols import type_checksum, variable_symbols
from .errors import Position, Problem, TypeProblem, class_of


class LibraryMemory(NamedTuple):
    """The data of a variable, and the byte that is set once it has been written."""
    data: Array
    written: Array


def check_library(given: object) -> None:
    """Raise a Problem for anything that is no library."""
    if isinstance(given, ctypes.CDLL):
        return
    raise TypeProblem(f"library is {class_of(given)}, not a loaded library", kind="argument",
                      help="load the shared object: ctypes.CDLL(path)")


def memory_of(library: ctypes.CDLL, namespace: str, tensor: Tensor, position: Position | None = None) -> LibraryMemory | None:
    """Return the memory of a variable, None if the library has none of its name in the namespace; raise a Problem if that has
    another type."""
    symbols = variable_symbols(namespace, tensor.name)
    try:
        checksum = ctypes.c_int32.in_dll(library, symbols.type).value
        data = (ctypes.c_uint8 * max(tensor.nbytes, 1)).in_dll(library, symbols.data)
        written = (ctypes.c_uint8 * 1).in_dll(library, symbols.flag)
    except ValueError:
        return None
    if checksum != type_checksum(tensor.element, tensor.shape):
        raise Problem(f"variable {tensor.name} is declared as {tensor.type}, but it has another type in the library", position,
                      kind="variable", help="give one of them another name, or use a context without the library")
    array = bytes_in(data)[:tensor.nbytes].view(tensor.numpy_dtype).reshape(tensor.shape)
    return LibraryMemory(array, bytes_in(written))


def bytes_in(memory: ctypes.Array[ctypes.c_uint8]) -> Array:
    """Return the same memory as a NumPy array."""
    return np.frombuffer(memoryview(memory).cast("B"), np.uint8)
