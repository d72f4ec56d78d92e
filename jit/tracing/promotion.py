"""Which element type several operands have together, and which types a function of NumPy takes and gives: NumPy's own rules,
asked of NumPy, with one difference.

Integers and bools that must become floats become f32, where NumPy makes float16, float32 or float64 of them by their width: f64
comes only of f64. TOSA has no f64, and few microcontrollers compute it.
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
"""The order of kinds: a Python number of a kind that is no higher takes the element type of the tensor."""


def is_known_to_numpy(element: ElementType) -> bool:
    return element.storage in NUMPY_NAMES and BY_STORAGE.get(element.storage) == element


def stand_in(element: ElementType) -> np.dtype[Any]:
    """The dtype that NumPy's rules are asked for: of types that NumPy lacks a similar one's."""
    if element.is_float and not is_known_to_numpy(element):
        return np.dtype(np.float32)
    return element.dtype


is_explicit = ContextVar("is_explicit", default=False)
"""True if only operations convert."""


@contextmanager
def explicit_conversions() -> Iterator[None]:
    """In it operands are not promoted (bools apart): types that differ are a Problem. So it is op by op, whose design document
    has operands converted by operations alone."""
    token = is_explicit.set(True)
    try:
        yield
    finally:
        is_explicit.reset(token)


# ---- several operands --------------------------------------------------------------------------------------------
@lru_cache(maxsize=1024)
def common(first: ElementType, second: ElementType) -> ElementType | None:
    """The element type that both become; None where there is none."""
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
    """Of bf16, which NumPy lacks, f32 beside another float or an integer of more than a byte. Other such types have no
    company."""
    if high == BF16 and is_known_to_numpy(low) and low.is_integer:
        return BF16 if low.bits <= 8 else F32
    if BF16 in (low, high):
        other = low if high == BF16 else high
        return {F16: F32, F32: F32, F64: F64}.get(other)
    return None


def promoted(elements: Sequence[ElementType], operator: str = "this operator") -> ElementType:
    """The element type of all together, as NumPy promotes them."""
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
"""The types of what a function takes, and of what it gives."""


@lru_cache(maxsize=4096)
def loop(name: str, elements: tuple[ElementType, ...]) -> Loop | str:
    """The loop of `numpy.NAME` for operands of these types; or why there is none."""
    function: np.ufunc = getattr(np, name)
    try:
        found = function.resolve_dtypes((*map(stand_in, elements), *(None,) * function.nout))
    except TypeError as error:
        return str(error)
    types = tuple(own(dtype, elements) for dtype in found)
    return types[:function.nin], types[function.nin:]


def own(dtype: np.dtype[Any], elements: Sequence[ElementType]) -> ElementType:
    """The element type of a loop of NumPy's for operands of these types."""
    found = BY_STORAGE[dtype.name]
    foreign = next((e for e in elements if not is_known_to_numpy(e)), None)
    if foreign is not None and dtype == stand_in(foreign):
        return foreign
    if found.is_float and (found != F16 or F16 not in elements) and F64 not in elements:
        return F32
    return found
