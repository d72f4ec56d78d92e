"""The result of a traced tensor's `__array_namespace__`: the functions of the Python array API standard, in its version
2025.12, with its names and arguments.

Most of the functions are those of `tosaic.ops`. This module adds the functions for which the standard has another name or
another result type. Functions that a graph cannot express (a shape that depends on values) are missing; `refusals.REASONS`
gives the reasons.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...lowering.graph.types import BY_STORAGE, F64, ElementType
from . import contractions, linear_algebra, ops
from .complex_tensor import PARTS, is_complex
from .conversion import broadcast, converted, element_type, is_number, tensor
from .ops import *  # noqa: F403
from .promotion import promoted
from .tensor import Tensor
from .trace import problem

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = VERSIONS[-1]

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
bool = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
DTYPES = {"bool": bool, "int8": int8, "int16": int16, "int32": int32, "int64": int64, "uint8": uint8, "uint16": uint16,
          "uint32": uint32, "uint64": uint64, "float32": float32, "float64": float64,
          "complex64": complex64, "complex128": complex128}
KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
         "complex floating": "c", "numeric": "iufc"}
DEVICE = "cpu"
"""The only device: a graph is for one device, which is chosen when it is compiled."""

Shape = int | Sequence[int]


def namespace(version: str | None = None) -> Any:
    """Return this module, which holds the functions. Raise a Problem for an unknown version."""
    import sys
    if version is not None and version not in VERSIONS:
        raise problem(f"there is no version {version!r} of the array API standard here", "argument",
                      help=f"one of {', '.join(VERSIONS)}")
    return sys.modules[__name__]


# ---- types -------------------------------------------------------------------------------------------------------
def dtype_of(x: Any) -> np.dtype[Any]:
    if isinstance(x, np.dtype):
        return x
    return x.dtype if hasattr(x, "dtype") and not isinstance(x, type) else element_type(x).dtype


def part_of(dtype: np.dtype[Any]) -> ElementType:
    """Return the element type; for a complex type, that of its parts."""
    return PARTS.get(dtype.name) or BY_STORAGE[dtype.name]


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the common dtype of all arguments; Python numbers contribute only their kind."""
    strong = [dtype_of(x) for x in arrays_and_dtypes if not is_python_number(x)]
    if not strong:
        raise problem("result_type of Python numbers alone", "argument", help="name a dtype")
    found = promoted([part_of(dtype) for dtype in strong], "result_type")
    kinds = {np.asarray(x).dtype.kind for x in arrays_and_dtypes if is_python_number(x)} | {dtype.kind for dtype in strong}
    if "c" in kinds:
        return complex128 if found == F64 else complex64
    if "f" in kinds and not found.is_float:
        return float32
    return int32 if "i" in kinds and found.kind == "bool" else found.dtype


def is_python_number(x: Any) -> Any:
    return is_number(x) or type(x).__name__ == "complex"


def can_cast(from_: Any, to: Any, /) -> Any:
    """True if every number of one dtype is a number of the other dtype, by NumPy's rules."""
    return np.can_cast(dtype_of(from_), dtype_of(to))


def isdtype(dtype: Any, kind: Any) -> Any:
    """True if a dtype is of a kind, is of one of several kinds, or equals another dtype."""
    if isinstance(kind, tuple):
        return any_of(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise problem(f"there is no kind {kind!r} of dtypes", "argument", help=", ".join(KINDS))
        return np.dtype(dtype).kind in KINDS[kind]
    return np.dtype(dtype) == np.dtype(kind)


def any_of(answers: Any) -> Any:
    return next((True for answer in answers if answer), False)


class FloatLimits(NamedTuple):
    """Result of `finfo`."""
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IntegerLimits(NamedTuple):
    """Result of `iinfo`."""
    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a float type."""
    found = np.finfo(dtype_of(type))
    eps, most, least, normal = (float(x) for x in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatLimits(found.bits, eps, most, least, normal, found.dtype)


def iinfo(type: Any, /) -> IntegerLimits:
    """Limits of an integer type."""
    dtype = dtype_of(type)
    found = np.iinfo(dtype)
    return IntegerLimits(found.bits, found.max, found.min, dtype)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    return ops.astype(x, dtype)


class Information:
    """Result of `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 32}

    def default_device(self) -> str:
        return DEVICE

    def devices(self) -> tuple[str, ...]:
        return (DEVICE,)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        return {"real floating": float32, "complex floating": complex64, "integral": int32, "indexing": int32}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> Information:
    return Information()


# ---- creation ----------------------------------------------------------------------------------------------------
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    return ops.asarray(obj, dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.arange(start, stop, step, dtype)


def empty(shape: Shape, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.empty(shape, dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.empty_like(x, dtype)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    if is_complex(dtype):
        return ops.astype(ops.eye(n_rows, n_cols, k, part_of(np.dtype(dtype))), dtype)
    return ops.eye(n_rows, n_cols, k, dtype)


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.full(shape, fill_value, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.full_like(x, fill_value, dtype)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> Any:
    return ops.linspace(start, stop, num, endpoint, dtype)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.ones(shape, dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.ones_like(x, dtype)


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.zeros(shape, dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return ops.zeros_like(x, dtype)


# ---- arguments with other names in the standard ------------------------------------------------------------------
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Clamp x and keep its type, whatever the types of the bounds."""
    found = ops.clip(x, min, max)
    return converted(found, tensor(x).element)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    return ops.reshape(x, shape)


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    return ops.expand_dims(x, axis)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to."""
    return broadcast(*shapes, operator="broadcast_shapes")


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return linear_algebra.diagonal(x, offset=offset)


def matmul(x1: Any, x2: Any, /) -> Any:
    """Multiply matrices and keep the type of the operands, also where `tosaic.ops` gives i32."""
    return in_type_of(ops.matmul, x1, x2)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return in_type_of(lambda a, b: ops.tensordot(a, b, axes), x1, x2)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return in_type_of(lambda a, b: ops.vecdot(a, b, axis), x1, x2)


def in_type_of(function: Any, x1: Any, x2: Any) -> Any:
    """Return the result in the common type of both operands."""
    if is_complex(x1) or is_complex(x2):
        return function(x1, x2)
    x, y = contractions.factors("the product", x1, x2)
    return converted(function(x, y), x.element)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Broadcast the arrays to one shape, each in its own type."""
    dims = broadcast(*(ops.asarray(x).shape for x in arrays), operator="broadcast_arrays")
    return tuple(ops.broadcast_to(x, dims) for x in arrays)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    return tuple(ops.meshgrid(*arrays, indexing=indexing))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return ops.unstack(x, axis)


OURS = frozenset({"annotations", "math", "Sequence", "Any", "NamedTuple", "np", "BY_STORAGE", "F64", "ElementType",
                  "contractions", "PARTS", "ComplexTensor", "is_complex", "part_of", "is_python_number",
                  "linear_algebra", "ops", "broadcast", "converted", "element_type", "is_number", "tensor", "promoted",
                  "Tensor", "problem", "VERSIONS", "DTYPES", "KINDS", "DEVICE", "Shape", "namespace", "dtype_of", "any_of",
                  "Information", "in_type_of", "FloatLimits", "IntegerLimits", "OURS"})
"""Names in this module that are not part of the standard."""
__all__ = sorted({name for name in (*ops.__all__, *globals()) if not name.startswith("_")} - OURS)
