"""A namespace of arrays that have values, as the suite needs one: each call of a function is a graph of its own, made of
tosaic's namespace and run by the interpreter, or compiled (TOSAIC_ARRAY_API_ENGINE=compiled)."""
from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tosaic
from tosaic.jit.tracing import array_namespace
from tosaic.jit.tracing.pytree import LEAF, unflatten
from tosaic.runtime.interpreter import interpret

COMPILED = os.environ.get("TOSAIC_ARRAY_API_ENGINE") == "compiled"
WITHOUT_TENSORS = frozenset({"isdtype", "finfo", "iinfo", "can_cast", "result_type", "broadcast_shapes",
                             "__array_namespace_info__"})
"""Functions whose results are no tensors."""


class Array:
    """An array with values."""
    __slots__ = ("data",)
    __array_priority__ = 100

    def __init__(self, data: Any) -> None:
        self.data = data

    dtype = property(lambda self: self.data.dtype)
    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    device = property(lambda self: array_namespace.DEVICE)
    T = property(lambda self: run(lambda x: transposed(x), self))
    mT = property(lambda self: run(lambda x: x.mT, self))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import sys
        array_namespace.namespace(api_version)
        return sys.modules[__name__]

    def __repr__(self) -> str:
        return f"Array({self.data!r})"

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, key: Any) -> Any:
        return run(lambda x, key: x[key], self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        run(lambda x: x.__setitem__(key, value), self)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        return self.data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        assert device == array_namespace.DEVICE and stream is None
        return self

    def __bool__(self) -> bool: return bool(self.data)
    def __int__(self) -> int: return int(self.data)
    def __float__(self) -> float: return float(self.data)
    def __complex__(self) -> complex: return complex(self.data)
    def __index__(self) -> int: return self.data.__index__()
    __hash__ = None  # type: ignore[assignment]


def transposed(x: Any) -> Any:
    if x.ndim != 2:
        raise ValueError("T is of matrices")
    return x.T


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
for name in (*BINARY, *(f"r{name}" for name in BINARY), "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"):
    def method(self: Array, *others: Any, name: str = f"__{name}__") -> Any:
        if any(not isinstance(x, Array | int | float | complex | bool) for x in others):
            return NotImplemented
        return run(lambda x, *given: getattr(x, name)(*given), self, *others)
    setattr(Array, f"__{name}__", method)


def run(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The function of tensors on arrays: a graph with the arrays as inputs, all else is known."""
    arrays: list[Any] = []
    each((args, options), lambda x: arrays.append(x.data))

    def traced(*tensors: Any) -> Any:
        rest = iter(tensors)
        given, named = each((args, options), lambda x: next(rest))
        return function(*given, **named)
    jitted = tosaic.jit(traced)
    if COMPILED:
        return wrapped(jitted(*arrays))
    stage = jitted.trace(*arrays)
    found = interpret(stage.module, stage.function, [pairs(a) for a in arrays if a.size])
    return wrapped(unflatten(stage.results or LEAF, iter(found)))


def each(value: Any, change: Callable[[Array], Any]) -> Any:
    """The nest with something else for each array in it."""
    match value:
        case Array():
            return change(value)
        case dict():
            return {name: each(v, change) for name, v in value.items()}
        case list() | tuple():
            return type(value)([each(v, change) for v in value])
        case slice():
            return slice(*(v.__index__() if isinstance(v, Array) else v for v in (value.start, value.stop, value.step)))
        case _:
            return value


def pairs(x: Any) -> Any:
    """Complex numbers as a graph has them."""
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def wrapped(value: Any) -> Any:
    """Arrays of NumPy as arrays with values, in any nest."""
    if isinstance(value, np.ndarray):
        return Array(value)
    if hasattr(value, "_fields"):
        return type(value)(*map(wrapped, value))
    return type(value)(map(wrapped, value)) if isinstance(value, tuple | list) else value


def unwrapped(value: Any) -> Any:
    return value.data if isinstance(value, Array) else value


def outside(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A function without tensors; it may be called with arrays."""
    return function(*map(unwrapped, args), **options)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    """Python numbers have the default types; what has values already is converted."""
    if isinstance(obj, Array):
        return Array(obj.data.astype(dtype or obj.dtype, copy=bool(copy)))
    found = np.asarray(unwrapped_list(obj))
    if dtype is None and not isinstance(obj, np.ndarray | np.generic):
        kind = found.dtype.kind if found.dtype.kind != "i" or fits(found) else ""
        dtype = {"f": np.float32, "i": np.int32, "c": np.complex64}.get(kind)
    return Array(np.array(found, dtype=dtype or found.dtype))


def fits(x: Any) -> bool:
    return not x.size or (int(x.min()) >= -(1 << 31) and int(x.max()) < 1 << 31)


def unwrapped_list(value: Any) -> Any:
    return [unwrapped_list(v) for v in value] if isinstance(value, list | tuple) else unwrapped(value)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Array:
    return Array(np.from_dlpack(x))


def __getattr__(name: str) -> Any:
    if name in ("linalg", "fft"):
        return Extension(getattr(array_namespace, name))
    if name not in array_namespace.__all__ and name not in ("__array_api_version__", "__array_namespace_info__"):
        raise AttributeError(name)
    found = getattr(array_namespace, name)
    if name in WITHOUT_TENSORS:
        return with_signature(partial(outside, found), found)
    return with_signature(partial(run, found), found) if callable(found) and not isinstance(found, np.dtype) else found


def with_signature(call: Any, found: Any) -> Any:
    import inspect
    call.__signature__ = inspect.signature(found)
    call.__name__ = found.__name__
    return call


class Extension:
    """A namespace inside the namespace."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        if name not in self.module.__all__:
            raise AttributeError(name)
        found = getattr(array_namespace if name in ("matmul", "tensordot", "vecdot") else self.module, name)
        return with_signature(partial(run, found), found)
