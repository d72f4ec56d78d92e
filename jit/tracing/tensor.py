"""The traced tensor: a value of the graph as a Python function sees it. NumPy's operators, methods and indexing.

The functions of the operators are in `tosaic.ops`; NumPy's own functions, called on a traced tensor, find them there by name.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from ...lowering.graph.graph import Value
from ...lowering.graph.types import ElementType, TensorType
from ...runtime.errors import Problem, TypeProblem, printable

if TYPE_CHECKING:
    from .trace import Scope


Raised: TypeAlias = type[Problem]


def _ops() -> Any:
    from . import ops
    return ops


class Tensor:
    """A tensor of a function that is being traced: it has a shape and an element type, and no values yet."""
    __slots__ = ("scope", "value")
    _is_traced = True
    """Mark that calls test (`calls.are_traced`)."""

    def __init__(self, value: Value, scope: Scope) -> None:
        self.value, self.scope = value, scope

    @property
    def type(self) -> TensorType:
        return self.value.type  # type: ignore[return-value]

    @property
    def element(self) -> ElementType:
        return self.type.element

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype that stores an element."""
        return self.element.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.dims

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def size(self) -> int:
        return self.type.size

    def __getattr__(self, name: str) -> NoReturn:
        """Raise for a name that a traced tensor does not have; names that Python and its libraries probe for begin with `_`."""
        if name.startswith("_"):
            raise AttributeError(name)
        from .refusals import no_attribute
        raise no_attribute(self, name)

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._problem(f"a traced tensor has no values to format as {spec!r}", self._static(), TypeProblem)
        return str(self)

    def __repr__(self) -> str:
        return printable(f"Tensor({self.value.type}, %{self.value.name})")

    def __add__(self, other: Any) -> Tensor: return _ops().add(self, other)
    def __radd__(self, other: Any) -> Tensor: return _ops().add(other, self)
    def __sub__(self, other: Any) -> Tensor: return _ops().subtract(self, other)
    def __rsub__(self, other: Any) -> Tensor: return _ops().subtract(other, self)
    def __mul__(self, other: Any) -> Tensor: return _ops().multiply(self, other)
    def __rmul__(self, other: Any) -> Tensor: return _ops().multiply(other, self)
    def __truediv__(self, other: Any) -> Tensor: return _ops().divide(self, other)
    def __rtruediv__(self, other: Any) -> Tensor: return _ops().divide(other, self)
    def __floordiv__(self, other: Any) -> Tensor: return _ops().floor_divide(self, other)
    def __rfloordiv__(self, other: Any) -> Tensor: return _ops().floor_divide(other, self)
    def __mod__(self, other: Any) -> Tensor: return _ops().remainder(self, other)
    def __rmod__(self, other: Any) -> Tensor: return _ops().remainder(other, self)
    def __pow__(self, other: Any) -> Tensor: return _ops().power(self, other)
    def __rpow__(self, other: Any) -> Tensor: return _ops().power(other, self)
    def __matmul__(self, other: Any) -> Tensor: return _ops().matmul(self, other)
    def __rmatmul__(self, other: Any) -> Tensor: return _ops().matmul(other, self)
    def __and__(self, other: Any) -> Tensor: return _ops().bitwise_and(self, other)
    def __rand__(self, other: Any) -> Tensor: return _ops().bitwise_and(other, self)
    def __or__(self, other: Any) -> Tensor: return _ops().bitwise_or(self, other)
    def __ror__(self, other: Any) -> Tensor: return _ops().bitwise_or(other, self)
    def __xor__(self, other: Any) -> Tensor: return _ops().bitwise_xor(self, other)
    def __rxor__(self, other: Any) -> Tensor: return _ops().bitwise_xor(other, self)
    def __lshift__(self, other: Any) -> Tensor: return _ops().left_shift(self, other)
    def __rlshift__(self, other: Any) -> Tensor: return _ops().left_shift(other, self)
    def __rshift__(self, other: Any) -> Tensor: return _ops().right_shift(self, other)
    def __rrshift__(self, other: Any) -> Tensor: return _ops().right_shift(other, self)
    def __lt__(self, other: Any) -> Tensor: return _ops().less(self, other)
    def __le__(self, other: Any) -> Tensor: return _ops().less_equal(self, other)
    def __gt__(self, other: Any) -> Tensor: return _ops().greater(self, other)
    def __ge__(self, other: Any) -> Tensor: return _ops().greater_equal(self, other)
    def __eq__(self, other: Any) -> Tensor: return _ops().equal(self, other)  # type: ignore[override]
    def __ne__(self, other: Any) -> Tensor: return _ops().not_equal(self, other)  # type: ignore[override]
    def __neg__(self) -> Tensor: return _ops().negative(self)
    def __pos__(self) -> Tensor: return self
    def __abs__(self) -> Tensor: return _ops().absolute(self)
    def __invert__(self) -> Tensor: return _ops().invert(self)
    __hash__ = object.__hash__

    def __getitem__(self, key: Any) -> Tensor:
        from .indexing import index
        return index(self, key)

    def __len__(self) -> int:
        if not self.ndim:
            raise self._problem(f"{self.type} has no length", raised=TypeProblem)
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        """Yield the parts along the first axis."""
        return (self[i] for i in range(len(self)))

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: return _ops().divmod(self, other)
    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]: return _ops().divmod(other, self)
    def __round__(self, digits: int = 0) -> Tensor: return _ops().round(self, digits or 0)

    @property
    def T(self) -> Tensor:
        """The tensor with its axes in reverse order."""
        return _ops().transpose(self)

    @property
    def real(self) -> Tensor:
        """The tensor itself, which has no complex numbers."""
        return self

    @property
    def imag(self) -> Tensor:
        """Zeros."""
        return _ops().imag(self)

    def of_pairs(self) -> Any:
        """Return the complex tensor whose parts are the two elements along the last axis."""
        from .complex_tensor import ComplexTensor
        return ComplexTensor(self[..., 0], self[..., 1])

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two axes exchanged."""
        return _ops().matrix_transpose(self)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.element.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.type.nbytes

    def reshape(self, *shape: Any) -> Tensor: return _ops().reshape(self, *shape)
    def ravel(self) -> Tensor: return _ops().ravel(self)
    def flatten(self) -> Tensor: return _ops().ravel(self)

    def transpose(self, *axes: Any) -> Tensor:
        order: Sequence[int] | None = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return _ops().transpose(self, order)

    def astype(self, dtype: Any, copy: bool = True) -> Tensor: return _ops().astype(self, dtype)
    def copy(self) -> Tensor: return self
    def squeeze(self, axis: Any = None) -> Tensor: return _ops().squeeze(self, axis)
    def swapaxes(self, a: int, b: int) -> Tensor: return _ops().swapaxes(self, a, b)
    def take(self, indices: Any, axis: int | None = None) -> Tensor: return _ops().take(self, indices, axis)
    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor: return _ops().repeat(self, repeats, axis)
    def clip(self, low: Any = None, high: Any = None) -> Tensor: return _ops().clip(self, low, high)
    def round(self, decimals: int = 0) -> Tensor: return _ops().round(self, decimals)
    def conj(self) -> Tensor: return _ops().conj(self)
    def conjugate(self) -> Tensor: return _ops().conj(self)

    def sum(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        return _ops().sum(self, axis, keepdims, dtype=dtype)

    def prod(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        return _ops().prod(self, axis, keepdims, dtype=dtype)

    def mean(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        return _ops().mean(self, axis, keepdims, dtype=dtype)

    def var(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
        return _ops().var(self, axis, keepdims, ddof=ddof)

    def std(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
        return _ops().std(self, axis, keepdims, ddof=ddof)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Tensor: return _ops().cumsum(self, axis, dtype=dtype)
    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Tensor: return _ops().cumprod(self, axis, dtype=dtype)
    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor: return _ops().max(self, axis, keepdims)
    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor: return _ops().min(self, axis, keepdims)
    def any(self, axis: Any = None, keepdims: bool = False) -> Tensor: return _ops().any(self, axis, keepdims)
    def all(self, axis: Any = None, keepdims: bool = False) -> Tensor: return _ops().all(self, axis, keepdims)
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor: return _ops().argmax(self, axis, keepdims)
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor: return _ops().argmin(self, axis, keepdims)
    def argsort(self, axis: int = -1) -> Tensor: return _ops().argsort(self, axis)
    def dot(self, other: Any) -> Tensor: return _ops().dot(self, other)
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: return _ops().trace(self, offset, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        return _ops().diagonal(self, offset, axis1, axis2)

    def searchsorted(self, v: Any, side: str = "left") -> Tensor: return _ops().searchsorted(self, v, side)

    def sort(self, *args: Any, **options: Any) -> NoReturn:
        raise self._problem("a traced tensor cannot be sorted in its place", "tosaic.ops.sort gives a sorted one")

    def fill(self, value: Any) -> NoReturn:
        raise self._problem("a traced tensor cannot be changed", "tosaic.ops.full_like makes a new one")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the functions of the Python array API standard."""
        from .array_namespace import namespace
        return namespace(api_version)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from .numpy_protocol import of_ufunc
        return of_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from .numpy_protocol import of_function
        return of_function(function, args, options)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise self._problem("a traced tensor cannot be changed", "build a new one with tosaic.ops.where or concatenate",
                            TypeProblem)

    def __bool__(self) -> NoReturn:
        raise self._problem("the truth of a traced tensor is only known when it runs", "tosaic.cond(test, then, "
                            "otherwise) chooses when running, tosaic.ops.where element by element, tosaic.ops.minimum "
                            f"and maximum stand for Python's min and max; {self._static()}")

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        raise self._problem("a traced tensor has no values to make an array of",
                            "use tosaic.ops in place of NumPy here; tosaic.ops.stack makes a tensor of a list of tensors",
                            TypeProblem)

    def _number(self) -> NoReturn:
        raise self._problem("a traced tensor has no values to make a Python number of",
                            self._static(), TypeProblem)

    def __int__(self) -> int: self._number()
    def __float__(self) -> float: self._number()
    def __index__(self) -> int: self._number()
    def item(self) -> NoReturn: self._number()
    def tolist(self) -> NoReturn: self._number()

    def _problem(self, message: str, help: str | None = None, raised: Raised | None = None) -> Problem:
        from .trace import problem
        return problem(message, "argument", help, raised)

    def _static(self) -> str:
        """Return the advice for a use that needs the value in Python, naming the argument to make static if the tensor is
        one."""
        name = self.scope.trace.parameters.get(self.value)
        given = f"static=({name!r},)" if name else "static=..."
        return f"if Python needs the value of an argument, make it static: tosaic.jit({given})"
