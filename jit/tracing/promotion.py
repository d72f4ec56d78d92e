"""The common element type of several operands, and the operand and result types of a NumPy function: NumPy's own rules, queried
from NumPy, with one difference.

Integers and bools that must become floats become f32, where NumPy chooses float16, float32 or float64 by their width: f64 comes
only from f64. TOSA has no f64, and few microcontrollers compute it.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from ...lowering.graph.types import BF16, BY_STORAGE, F16, F32, F64, I1, NUMPY_NAMES, ElementType
from .trace import problem

KINDS = {"bool": 0, "signed": 1, "unsigned": 1, "float": 2}
"""The order of kinds: a Python number of the same or a lower kind takes the element type of the tensor."""


def is_known_to_numpy(element: ElementType) -> bool:
    return element.storage in NUMPY_NAMES and BY_STORAGE.get(element.storage) == element


def stand_in(element: ElementType) -> np.dtype[Any]:
    """Return the dtype for which to query NumPy's rules; for a type that NumPy lacks, that of a similar type."""
    if element.is_float and not is_known_to_numpy(element):
        return np.dtype(np.float32)
    return element.dtype


is_explicit = ContextVar("is_explicit", default=False)
"""True if only operations convert."""


@contextmanager
def explicit_conversions() -> Iterator[None]:
    """Disable promotion of operands (bools apart) inside the context: types that differ are a Problem. The op-by-op runtime
    uses this, as its design document has operands converted only by operations."""
    token = is_explicit.set(True)
    try:
        yield
    finally:
        is_explicit.reset(token)


# ---- several operands --------------------------------------------------------------------------------------------
@lru_cache(maxsize=1024)
def common(first: ElementType, second: ElementType) -> ElementType | None:
    """Return the type that both operands become; None if there is none."""
    if first == second:
        return first
    low, high = sorted((first, second), key=lambda e: KINDS.get(e.kind, 9))
    if low.kind not in KINDS or high.kind not in KINDS:
        return None
    if low == I1:
        return high
    if not (is_known_to_numpy(low) and is_known_to_numpy(high)):
        return common_of_foreign(low, high)
    found = BY_STORAGE[np.result_type(low.dtype, high.dtype).name]
    if low.kind != "float" and high.kind != "float":
        return None if found.is_float else found  # i64 and ui64
    return F32 if found == F64 and F64 not in (low, high) else found


def common_of_foreign(low: ElementType, high: ElementType) -> ElementType | None:
    """Return bf16 for bf16 beside an integer of at most one byte, else f32 (f64 beside f64), as NumPy lacks bf16. Other such
    types have no common type."""
    if high == BF16 and is_known_to_numpy(low) and low.is_integer:
        return BF16 if low.bits <= 8 else F32
    if BF16 in (low, high):
        other = low if high == BF16 else high
        return {F16: F32, F32: F32, F64: F64}.get(other)
    return None


def promoted(elements: Sequence[ElementType], operator: str = "this operator") -> ElementType:
    """Return the element type of all together, by NumPy's promotion."""
    found, differ = elements[0], is_explicit.get() and len({*elements} - {I1}) > 1
    for element in elements[1:]:
        both = common(found, element)
        if both is None or differ:
            kinds = " and ".join(dict.fromkeys(map(str, elements)))
            raise problem(f"{operator} of {kinds}: {'their element types differ' if differ else 'no element type holds both'}",
                          help=f"convert one of them: x.astype({str(found)!r})")
        found = both
    return found


# ---- functions of NumPy ------------------------------------------------------------------------------------------
Loop = tuple[tuple[ElementType, ...], tuple[ElementType, ...]]
"""Types of a function's operands and of its results."""


@lru_cache(maxsize=4096)
def loop(name: str, elements: tuple[ElementType, ...]) -> Loop | str:
    """Return the loop of `numpy.NAME` for operands of these types, or the reason why there is none."""
    function: np.ufunc = getattr(np, name)
    try:
        found = function.resolve_dtypes((*map(stand_in, elements), *(None,) * function.nout))
    except TypeError as error:
        return str(error)
    types = tuple(own(dtype, elements) for dtype in found)
    return types[:function.nin], types[function.nin:]


def own(dtype: np.dtype[Any], elements: Sequence[ElementType]) -> ElementType:
    """Return the element type that stands for a dtype of NumPy's loop for operands of these types."""
    found = BY_STORAGE[dtype.name]
    foreign = next((e for e in elements if not is_known_to_numpy(e)), None)
    if foreign is not None and dtype == stand_in(foreign):
        return foreign
    if found.is_float and (found != F16 or F16 not in elements) and F64 not in elements:
        return F32
    return found
