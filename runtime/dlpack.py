"""DLPack tensors whose element types NumPy lacks (bfloat16, floats of 8 bits) as arrays of `ml_dtypes`, over the memory of
their owner. `numpy.from_dlpack` takes the other types; this module reads the same structures for the rest.

A capsule that is not consumed releases its tensor when it is destroyed itself: the array only has to keep the capsule.
"""
from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .arena import Array

CPU = 1
ON_HOST = frozenset((CPU, 3, 11, 13))
"""Device types whose memory the processor can read: its own, pinned for CUDA and ROCm, managed by CUDA."""
DEVICES = {2: "CUDA", 3: "pinned CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "pinned ROCm",
           13: "managed CUDA", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon", 17: "MAIA", 18: "Trainium"}
ELEMENTS = {(4, 16): "bfloat16", (7, 8): "float8_e3m4", (8, 8): "float8_e4m3", (9, 8): "float8_e4m3b11fnuz",
            (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz",
            (14, 8): "float8_e8m0fnu"}
"""Names of dtypes of `ml_dtypes` by DLPack's code and bits."""
READ_ONLY = 1
"""Bit of a versioned tensor's flags."""


class Device(ctypes.Structure):
    """DLDevice."""
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class Element(ctypes.Structure):
    """DLDataType."""
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", Element),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned. (The older DLManagedTensor begins with the tensor.)"""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("owner", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def narrow_array(value: Any) -> Array:
    """Return the array over a tensor on this processor; raise a BufferError if its element type is not in `ELEMENTS`."""
    capsule = capsule_of(value)
    tensor, is_read_only = tensor_of(capsule)
    dtype = dtype_of(tensor.dtype)
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else tuple(row_major(shape))
    if any(stride < 0 for stride in strides):
        raise BufferError("its strides are negative")
    items = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides)) if math.prod(shape) else 0
    address = (tensor.data or 0) + tensor.byte_offset
    memory = (ctypes.c_uint8 * (items * dtype.itemsize))
    owner: Any = memory.from_address(address) if items else memory()
    owner.capsule = capsule
    array: Array = np.ndarray(shape, dtype, owner, 0, [s * dtype.itemsize for s in strides])
    array.flags.writeable = not is_read_only
    return array


def capsule_of(value: Any) -> Any:
    """Return the capsule, versioned if the owner supports that."""
    try:
        return value.__dlpack__(max_version=(1, 0))
    except TypeError:
        return value.__dlpack__()


def tensor_of(capsule: Any) -> tuple[Tensor, bool]:
    """Return the tensor of a capsule, and whether it must not be written."""
    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        whole = Versioned.from_address(find(capsule, b"dltensor_versioned"))
    except ValueError:
        return Tensor.from_address(find(capsule, b"dltensor")), False
    if whole.major != 1:
        raise BufferError(f"its DLPack has version {whole.major}.{whole.minor}, 1 is known")
    return whole.tensor, bool(whole.flags & READ_ONLY)


def dtype_of(element: Element) -> np.dtype[Any]:
    import ml_dtypes
    name = ELEMENTS.get((element.code, element.bits))
    if name is None or element.lanes != 1:
        raise BufferError(f"its elements (DLPack's type {element.code}, {element.bits} bits, {element.lanes} lanes) have no "
                          "NumPy dtype")
    return np.dtype(getattr(ml_dtypes, name))


def row_major(shape: Sequence[int]) -> Iterator[int]:
    return (math.prod(shape[axis + 1:]) for axis in range(len(shape)))
