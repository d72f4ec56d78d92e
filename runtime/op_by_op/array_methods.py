"""The array interface of a tensor handle: Python's operators and the usual methods, each an operation of the runtime.

An operator on two ready handles whose kernel is known goes directly to native code: one lookup in the runtime's table, one
call. All other cases go through `CoreRuntime.run`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
          "mod": "remainder", "pow": "power",
          "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
          "lshift": "left_shift", "rshift": "right_shift"}
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert"}
"""Operations of Python's operators."""


class ArrayMethods:
    """Operators and methods of a handle."""
    __slots__ = ()
    __array_ufunc__ = None
    __hash__ = object.__hash__
    if TYPE_CHECKING:
        def __add__(self, other: Any) -> Self: ...
        def __radd__(self, other: Any) -> Self: ...
        def __sub__(self, other: Any) -> Self: ...
        def __rsub__(self, other: Any) -> Self: ...
        def __mul__(self, other: Any) -> Self: ...
        def __rmul__(self, other: Any) -> Self: ...
        def __truediv__(self, other: Any) -> Self: ...
        def __matmul__(self, other: Any) -> Self: ...
        def __neg__(self) -> Self: ...
        def __lt__(self, other: Any) -> Self: ...
        def __gt__(self, other: Any) -> Self: ...

    # ---- methods -----------------------------------------------------------------------------------------------------
    def _run(self, name: str, *operands: Any, **attributes: Any) -> Self:
        found: Self = runtime_of(self).run(name, self, *operands, **{n: v for n, v in attributes.items() if v is not None})
        return found

    def reshape(self, *shape: Any) -> Self:
        """Return the handle in another shape; a shape that is itself a handle makes the result's metadata depend on data."""
        given = shape[0] if len(shape) == 1 else shape
        if isinstance(given, ArrayMethods):
            return self._run("reshape", given)
        return self._run("reshape", shape=[given] if isinstance(given, int) else list(given))

    def transpose(self, *axes: int) -> Self: return self._run("transpose", axes=list(axes) or None)
    def astype(self, dtype: Any) -> Self: return self._run("astype", dtype=np.dtype(dtype))
    def ravel(self) -> Self: return self._run("ravel")
    def squeeze(self, axis: int | None = None) -> Self: return self._run("squeeze", axis=axis)
    def sum(self, axis: Any = None, keepdims: bool | None = None) -> Self: return self._run("sum", axis=axis, keepdims=keepdims)
    def mean(self, axis: Any = None, keepdims: bool | None = None) -> Self:
        return self._run("mean", axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool | None = None) -> Self: return self._run("max", axis=axis, keepdims=keepdims)
    def min(self, axis: Any = None, keepdims: bool | None = None) -> Self: return self._run("min", axis=axis, keepdims=keepdims)
    def argmax(self, axis: int) -> Self: return self._run("argmax", axis=axis)
    def argmin(self, axis: int) -> Self: return self._run("argmin", axis=axis)
    def clip(self, low: Any, high: Any) -> Self: return self._run("clip", low, high)

    def __getitem__(self, key: Any) -> Self:
        return self._run("getitem", key=repr(plain_key(key)))

    # ---- what is known -----------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; waits until it is known."""
        shape: tuple[int, ...] = self.await_metadata().shape  # type: ignore[attr-defined]
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype; waits until it is known."""
        dtype: np.dtype[Any] = self.await_metadata().dtype  # type: ignore[attr-defined]
        return dtype

    @property
    def ndim(self) -> int: return len(self.shape)

    @property
    def T(self) -> Self: return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    # ---- values ------------------------------------------------------------------------------------------------------
    def _value(self) -> Any: return self.get()  # type: ignore[attr-defined]
    def item(self) -> Any: return self._value().item()
    def tolist(self) -> Any: return self._value().tolist()
    def __bool__(self) -> bool: return bool(self._value())
    def __int__(self) -> int: return int(self.item())
    def __float__(self) -> float: return float(self.item())
    def __index__(self) -> int: return self._value().__index__()
    def __pos__(self) -> Self: return self


def runtime_of(*operands: Any) -> Any:
    """Return the runtime of the first operand that has one."""
    for operand in operands:
        runtime = getattr(operand, "_runtime", None)
        if runtime is not None:
            return runtime
    from ..errors import Problem
    raise Problem("this handle belongs to no runtime", kind="argument",
                  help="make it with runtime.tensor or runtime.pending, or call runtime.run")


def binary(name: str, is_quick: bool = True) -> Callable[[Any, Any], Any]:
    """Return the method of an operator: the quick path, with the ordinary one as a fallback."""
    def operate(self: Any, other: Any) -> Any:
        if type(self) is type(other) and (runtime := self._runtime or other._runtime) is not None:
            known = runtime.quick.get((name, self._metadata, other._metadata))
            if known is not None:
                a, b, call = self._array, other._array, known[1]
                if a is None or b is None or call is None:
                    return runtime.run_later(name, known, [self, other])
                try:
                    return type(self)(runtime, known[0], call(a, b))
                except Exception:  # the ordinary path reports the error
                    pass
        return runtime_of(self, other).run(name, self, other)

    def run(self: Any, other: Any) -> Any:
        return runtime_of(self, other).run(name, self, other)

    return operate if is_quick else run


def reflected(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: runtime_of(self).run(name, other, self)


def unary(name: str) -> Callable[[Any], Any]:
    return lambda self: runtime_of(self).run(name, self)


def install(cls: type, is_quick: bool = True) -> None:
    """Give the class Python's operators, with or without the quick path."""
    for special, name in (BINARY | COMPARISONS).items():
        setattr(cls, f"__{special}__", binary(name, is_quick))
    for special, name in BINARY.items():
        setattr(cls, f"__r{special}__", reflected(name))
    for special, name in UNARY.items():
        setattr(cls, f"__{special}__", unary(name))


def plain_key(key: Any) -> Any:
    """Return an index as numbers, None and tuples, whose text can be read back."""
    match key:
        case tuple(): return tuple(map(plain_key, key))
        case slice(): return "slice", *(None if n is None else int(n) for n in (key.start, key.stop, key.step))
        case None: return None
        case _ if key is Ellipsis: return "..."
        case _:
            import operator
            try:
                return operator.index(key)
            except TypeError:
                from ..errors import TypeProblem, class_of
                raise TypeProblem(f"a handle cannot be indexed by {class_of(key)}", kind="argument",
                                  help="index by integers, slices, None and ...; runtime.run('take', ...) takes a "
                                       "tensor") from None


install(ArrayMethods)
