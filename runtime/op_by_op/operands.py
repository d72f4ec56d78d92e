"""The operands that Python code may use beside handles: numbers and NumPy's default arrays take the type of the first handle,
other arrays keep theirs.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arena import Array
from ..errors import Problem, TypeProblem, ValueProblem
from .handle import TensorHandle, as_numpy, given_away

if TYPE_CHECKING:
    from .core import CoreRuntime


def operands_of(runtime: CoreRuntime, values: Sequence[Any]) -> list[TensorHandle]:
    """Return handles of the operands of one operation."""
    like = next((v for v in values if isinstance(v, TensorHandle)), None)
    return [handle_of(runtime, v, like) for v in values]


def handle_of(runtime: CoreRuntime, value: Any, like: TensorHandle | None) -> TensorHandle:
    """Return the handle of one operand; `like` is the handle whose type it takes."""
    if isinstance(value, TensorHandle):
        if not value.is_valid:
            raise given_away()
        return value
    if like is None or not is_loose(value):
        return runtime.tensor(value)
    if like.metadata is not None:
        return runtime.tensor(of_type(value, like.metadata.dtype), copy=True)
    return later(runtime, value, like)


def is_loose(value: Any) -> bool:
    """True if a value takes the type of the other operand."""
    return isinstance(value, bool | int | float | list) or (
        isinstance(value, np.ndarray | np.generic) and value.dtype.name in ("float64", "int64"))


def of_type(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return a loose value as an array of `dtype`; raise a Problem if the type cannot hold it. An array of another kind keeps
    its own type."""
    array = np.asarray(value)
    is_float = dtype.kind in "fV"
    if is_float or dtype.kind == array.dtype.kind or (array.dtype.kind == "b" and dtype.kind != "b"):
        if not is_float and not np.array_equal(array.astype(dtype), array):
            raise ValueProblem(f"{value!r} does not fit {dtype.name}", kind="argument")
        return array.astype(dtype)
    if array.dtype.kind == "i" and dtype.kind in "ub" and np.array_equal(array.astype(dtype), array):
        return array.astype(dtype)
    if isinstance(value, np.ndarray):
        return as_numpy(value)
    raise TypeProblem(f"{value!r} meets a tensor of {dtype.name}, which cannot hold it", kind="type",
                      help="convert the tensor first: x.astype('float32')")


def later(runtime: CoreRuntime, value: Any, like: TensorHandle) -> TensorHandle:
    """Return a handle of a loose value that takes its type when that of `like` is known."""
    handle, resolver = runtime.pending()

    def known(_: object) -> None:
        try:
            resolver.set(of_type(value, like.dtype))
        except Problem as problem:
            resolver.fail(problem)

    like.then_metadata(known)
    return handle
