"""`reduce`, `accumulate` and `outer` of NumPy's universal functions, for traced tensors.

Associative functions combine halves, or growing distances, in as many steps as the extent has binary digits. The others
(subtract, divide, power, ...) combine one element after the other, for at most SEQUENCE elements.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .conversion import axis_of, converted, element_type, tensor
from .creation import full
from .layout import concatenate, reshape
from .tensor import Tensor
from .trace import problem

Binary = Callable[[Any, Any], Any]

SEQUENCE = 64
"""Maximum number of elements along an axis that a non-associative function combines one after the other."""
ASSOCIATIVE = frozenset({"add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor",
                         "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "hypot", "logaddexp", "logaddexp2"})
DIRECT = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}
"""Reductions that are functions of their own."""
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})


def reduce(function: Binary, ufunc: np.ufunc, x: Any, axis: int | Sequence[int] | None = 0, dtype: Any = None,
           keepdims: bool = False, initial: Any = None) -> Tensor:
    """Implement `ufunc.reduce`: along the first axis by default."""
    check_binary(ufunc)
    x = prepared(ufunc, x, dtype)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int | np.integer) else axis
    places = sorted({axis_of(a, x.ndim) for a in axes})
    direct = DIRECT.get(ufunc.__name__)
    if direct:
        from . import ops
        found: Tensor = getattr(ops, direct)(x, axis=tuple(places), keepdims=True)
    else:
        found = x
        for place in places:
            found = folded(function, ufunc, found, place)
    if initial is not None:
        found = function(tensor(initial, found.element), found)
    return found if keepdims else reshape(found, tuple(n for a, n in enumerate(x.shape) if a not in places))


def folded(function: Binary, ufunc: np.ufunc, x: Tensor, axis: int) -> Tensor:
    """Reduce along one axis, which stays with extent 1."""
    extent = x.shape[axis]
    if not extent:
        if ufunc.identity is None:
            raise problem(f"numpy.{ufunc.__name__}.reduce of {x.type} has nothing to begin with", "shape")
        return full((*x.shape[:axis], 1, *x.shape[axis + 1:]), ufunc.identity, x.element)
    if ufunc.__name__ not in ASSOCIATIVE:
        check_length(ufunc, x, axis)
        found = part(x, axis, 0, 1)
        for i in range(1, extent):
            found = function(found, part(x, axis, i, i + 1))
        return found
    while (extent := x.shape[axis]) > 1:
        half = extent // 2
        both = function(part(x, axis, 0, half), part(x, axis, half, 2 * half))
        x = concatenate([both, part(x, axis, 2 * half, extent)], axis) if extent % 2 else both
    return x


def accumulate(function: Binary, ufunc: np.ufunc, x: Any, axis: int = 0, dtype: Any = None) -> Tensor:
    """Implement `ufunc.accumulate`: combine each element with all before it."""
    check_binary(ufunc)
    return running(function, prepared(ufunc, x, dtype), axis, ufunc if ufunc.__name__ not in ASSOCIATIVE else None)


def running(function: Binary, x: Tensor, axis: int, sequential: np.ufunc | None = None) -> Tensor:
    """Combine each element with all before it along an axis."""
    place = axis_of(axis, x.ndim)
    extent = x.shape[place]
    if sequential is not None:
        check_length(sequential, x, place)
        parts = [part(x, place, i, i + 1) for i in range(extent)]
        for i in range(1, extent):
            parts[i] = function(parts[i - 1], parts[i])
        return concatenate(parts, place) if extent > 1 else x
    distance = 1
    while distance < extent:
        moved = function(part(x, place, 0, extent - distance), part(x, place, distance, extent))
        x = concatenate([part(x, place, 0, distance), moved], place)
        distance *= 2
    return x


def outer(function: Binary, ufunc: np.ufunc, a: Any, b: Any, dtype: Any = None) -> Any:
    """Implement `ufunc.outer`: combine each element of a with each of b."""
    check_binary(ufunc)
    x, y = tensor(a), tensor(b)
    if dtype is not None:
        x, y = converted(x, element_type(dtype)), converted(y, element_type(dtype))
    return function(reshape(x, (*x.shape, *(1,) * y.ndim)), y)


def prepared(ufunc: np.ufunc, x: Any, dtype: Any) -> Tensor:
    """Return the operand in the type in which it is combined."""
    x = tensor(x)
    if dtype is not None:
        return converted(x, element_type(dtype))
    return converted(x, element_type(bool)) if ufunc.__name__ in LOGICAL else x


def check_binary(ufunc: np.ufunc) -> None:
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise problem(f"numpy.{ufunc.__name__} combines no two numbers into one", "argument")


def check_length(ufunc: np.ufunc, x: Tensor, axis: int) -> None:
    if x.shape[axis] > SEQUENCE:
        raise problem(f"numpy.{ufunc.__name__} along axis {axis} of {x.type}: it goes one element after the other, "
                      f"{SEQUENCE} at most", "unsupported", help="tosaic.while_loop repeats when running")


def part(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    return x[(slice(None),) * axis + (slice(start, stop),)]


__all__ = ["accumulate", "outer", "reduce", "running"]
