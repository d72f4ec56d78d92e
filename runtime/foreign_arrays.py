"""Arrays of other libraries as NumPy arrays over the same memory, from objects with DLPack (`__dlpack__`: PyTorch, JAX, ...),
with `__array_interface__` or `__array__`, or with the buffer protocol (bytes, memoryview, array.array, mmap, ctypes). Nothing
is copied, unless an object's own `__array__` does so.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .arena import Array

ON_DEVICE = "copy it to the CPU first: tensor.cpu() in PyTorch, cupy.asnumpy(array) in CuPy, jax.device_get(array) in JAX"


class Unreadable(Exception):
    """An object whose elements cannot be read in place, with the reason and the remedy."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def has_memory(value: Any) -> bool:
    """True if an object claims to have elements: the test before `borrowed`."""
    return any(hasattr(value, name) for name in ("__dlpack__", "__array_interface__", "__array__", "__cuda_array_interface__")
               ) or is_buffer(value)


def is_buffer(value: Any) -> bool:
    """True if an object has the buffer protocol."""
    try:
        memoryview(value).release()
    except (TypeError, ValueError, BufferError):
        return False
    return True


def borrowed(value: Any, may_copy: bool = True) -> Array:
    """Return the object's elements as an array, read-only if its owner says so. Bytes are `uint8`. Raises `Unreadable`. An
    object that only has `__array__` may copy, unless writes to the array must reach it."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if isinstance(value, np.generic):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return from_dlpack(value, may_copy)
        if isinstance(value, bytes | bytearray | memoryview) or (not hasattr(value, "__array__") and is_buffer(value)):
            return np.asarray(memoryview(value))
        if hasattr(value, "__cuda_array_interface__") and not hasattr(value, "__array__"):
            raise Unreadable("its elements are on a CUDA device", ON_DEVICE)
        return np.asarray(value, copy=None if may_copy else False)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(str(error), help_for(str(error))) from error


def from_dlpack(value: Any, may_copy: bool) -> Array:
    """Return the elements of a DLPack tensor, which must be in memory that the processor reads."""
    from .dlpack import DEVICES, ON_HOST, narrow_array
    device, number = value.__dlpack_device__()
    if device not in ON_HOST:
        raise Unreadable(f"its elements are on the device {DEVICES.get(device, f'of type {device}')}:{int(number)}", ON_DEVICE)
    try:
        return np.from_dlpack(value)
    except Exception as error:
        if "dtype" in str(error):
            return narrow_array(value)
        if not (may_copy and hasattr(value, "__array__")):
            raise
        try:
            return np.asarray(value)
        except Exception:
            raise error from None


def help_for(error: str) -> str:
    """Return the remedy for the owner's message, if it is known."""
    if "requires grad" in error or "require gradient" in error:
        return "pass tensor.detach()"
    if "conjugate bit" in error:
        return "pass tensor.resolve_conj()"
    return "pass a NumPy array"


def is_untyped(value: Any) -> bool:
    """True if an object is bytes that may represent elements of any type, such as those from a file or a socket."""
    if isinstance(value, memoryview):
        return value.format in ("B", "c") and value.ndim == 1 and value.contiguous
    return isinstance(value, bytes | bytearray) or type(value).__name__ == "mmap"


def is_flat(value: Any) -> bool:
    """True if an object has elements of a type, and cannot have a shape."""
    return type(value).__module__ == "array" and type(value).__name__ == "array"
