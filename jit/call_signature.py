"""The signature that a call of a jitted function is compiled for: static values, nests, and the types of the tensors in them.
Wrong arguments are reported here, and the others become arrays that native code reads.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..lowering.graph.types import BY_STORAGE, F32, I1, I32, Array, TensorType
from ..runtime.errors import TypeProblem, ValueProblem, class_of
from ..runtime.foreign_arrays import Unreadable, borrowed, has_memory
from ..runtime.public_names import public_class
from .tracing.caller import caller
from .tracing.pytree import Structure
from .tracing.tensor import Tensor
from .tracing.trees import kinds


@public_class
@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An argument without values: its shape, and a dtype or the name of an element type (`i8`, `float32`). An extent of None is
    open: `compile` then returns a function that is compiled for the shapes of each call (`open_compiled`)."""
    shape: tuple[int | None, ...]
    dtype: Any = "f32"
    is_tensor_spec: ClassVar[bool] = True
    """Marks the class as a leaf, rather than a dataclass of tensors."""

    @property
    def type(self) -> TensorType:
        from .tracing.complex_tensor import is_complex, part_type
        from .tracing.conversion import element_type, extents
        shape = self.shape if isinstance(self.shape, list | tuple) else extents(self.shape)
        dims = tuple(None if n is None else extents(n)[0] for n in shape)
        if is_complex(self.dtype):
            return TensorType((*dims, 2), part_type(self.dtype))
        return TensorType(dims, element_type(self.dtype))

    @property
    def is_open(self) -> bool:
        """True if an extent is not known."""
        return isinstance(self.shape, list | tuple) and None in self.shape


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call: static values and nests of tensors, by parameter. The key of the compiled functions that are
    kept."""
    static: tuple[tuple[str, Any, Any], ...]
    structures: tuple[tuple[str, Structure], ...]
    types: tuple[TensorType, ...]

    def __str__(self) -> str:
        return ", ".join([*(f"{name}={value!r}" for name, value, _ in self.static), *map(str, self.types)])


def static_names(signature: inspect.Signature, static: Iterable[str | int]) -> frozenset[str]:
    """Names of the static parameters, given by name or number."""
    names = list(signature.parameters)
    found = set()
    for each in (static,) if isinstance(static, str | int) else static:
        if not (-len(names) <= each < len(names) if isinstance(each, int) else each in names):
            raise ValueProblem(f"static parameter {each!r} is none of ({', '.join(names)})", caller(),
                               kind="argument")
        found.add(names[each] if isinstance(each, int) else each)
    return frozenset(found)


def kind_of(name: str, value: Any) -> Any:
    """Return a key that distinguishes static values that compare equal: 1, 1.0 and True, 0.0 and -0.0."""
    try:
        hash(value)
    except TypeError:
        raise TypeProblem(f"static argument {name} is {class_of(value)}, which cannot be a key", caller(),
                          kind="argument", help="use a tuple for a list; arrays are not static") from None
    return kinds(value)


def array_or_number(function: str, name: str, leaf: Any) -> Any:
    """Return a leaf of the arguments; for an object of another library, the array over its memory."""
    if isinstance(leaf, np.ndarray | bool | int | float | complex | TensorSpec | Tensor) or not has_memory(leaf):
        return leaf
    try:
        return borrowed(leaf)
    except Unreadable as error:
        raise TypeProblem(f"argument {name} of {function} is {class_of(leaf)} that cannot be read: {error}",
                          caller(), kind="argument", help=error.help) from error


def leaf_type(function: str, name: str, parameter: str, leaf: Any) -> TensorType:
    """Return the type of the tensor argument called `name`, or of the part of a parameter's nest of that name."""
    if isinstance(leaf, TensorSpec):
        return leaf.type
    if isinstance(leaf, bool | int | float):
        return TensorType((), I1 if isinstance(leaf, bool) else I32 if isinstance(leaf, int) else F32)
    if isinstance(leaf, complex):
        return TensorType((2,), F32)
    if isinstance(leaf, Tensor):
        raise ValueProblem(f"argument {name} of {function} is a tensor of a trace that has ended", caller(),
                           kind="argument", help="return it from the traced function")
    if not isinstance(leaf, np.ndarray):
        raise TypeProblem(f"argument {name} of {function} is {class_of(leaf)}, which is no tensor", caller(),
                          kind="argument", help=f"pass an array; or say that it is static: tosaic.jit(static=({parameter!r},))"
                          + (", or metadata={'static': True} of a dataclass's field" if name != parameter else ""))
    if leaf.dtype.name in ("complex64", "complex128"):
        return TensorType((*leaf.shape, 2), BY_STORAGE[leaf.real.dtype.name])
    element = BY_STORAGE.get(leaf.dtype.name)
    if element is None:
        raise TypeProblem(f"argument {name} of {function} is an array of {leaf.dtype}, which no tensor holds", caller(),
                          kind="argument")
    return TensorType(leaf.shape, element)


def as_array(leaf: Any, type: TensorType) -> Array:
    """Return a leaf as an array that native code can read."""
    if isinstance(leaf, int) and not isinstance(leaf, bool) and not -(1 << 31) <= leaf < 1 << 31:
        raise ValueProblem(f"{leaf} does not fit i32, the type of a Python int", caller(), kind="argument")
    is_pair = isinstance(leaf, complex) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind == "c")
    return np.require(leaf, np.result_type(type.element.dtype, np.complex64) if is_pair else type.element.dtype, ["C", "A"])
