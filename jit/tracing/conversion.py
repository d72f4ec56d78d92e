"""Conversion to tensors of Python numbers, NumPy arrays and nested lists, and of operands to one rank and element type.

A Python number takes the element type of the tensor that it is combined with. So do arrays of float64 and int64, NumPy's
defaults, if the kind fits; alone they become f32 and i32. Every other array keeps its type.
"""
from __future__ import annotations

import math
import operator as operators
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lowering.graph.types import BY_STORAGE, ELEMENT_TYPES, F32, I1, I32, Array, ElementType, TensorType
from ...runtime.errors import AxisProblem, Problem, TypeProblem, class_of
from .promotion import promoted
from .tensor import Tensor
from .trace import constant, current, problem, recorded, usable

LARGE = 1 << 10
"""Minimum size in bytes of an array that is looked up among the arrays used before."""

NAMES = {"float": "f32", "int": "i32", "bool": "i1", "bf16": "bf16"}


def element_type(dtype: Any) -> ElementType:
    """Return the element type that `dtype` names: MLIR's name (`i4`), NumPy's (`int8`), a dtype, or float, int, bool."""
    if isinstance(dtype, ElementType):
        return dtype
    name = dtype if isinstance(dtype, str) else {float: "f32", int: "i32", bool: "i1"}.get(dtype, "")
    found = ELEMENT_TYPES.get(NAMES.get(name, name)) or BY_STORAGE.get(name)
    if found is None:
        try:
            found = BY_STORAGE.get(np.dtype(dtype).name)
        except TypeError:
            found = None
    if found is None:
        raise problem(f"{dtype!r} is no element type", "argument", help=f"one of {', '.join(ELEMENT_TYPES)}",
                      raised=TypeProblem)
    return found


def is_number(value: Any) -> bool:
    """True if `value` takes the element type of the tensor that it is combined with."""
    return isinstance(value, bool | int | float | np.float64 | np.int64 | np.bool_)


def number(value: Any, element: ElementType | None, rank: int = 0) -> Tensor:
    """Return a Python number as a tensor of `rank` dimensions of extent 1."""
    if element is None:
        element = I1 if isinstance(value, bool | np.bool_) else F32 if isinstance(value, float) else I32
    fits = element.is_float or not isinstance(value, float)
    if not fits or (element.kind == "bool" and value not in (0, 1)):
        raise problem(f"{value!r} meets a tensor of {element}, which cannot hold it",
                      help="convert the tensor first: x.astype('f32')")
    if element.is_integer:
        in_range(int(value), int(value), element)
    return constant(np.full((1,) * rank, value, element.dtype), element)


def in_range(low: int, high: int, element: ElementType) -> None:
    """Raise a Problem unless low to high fits an integer type."""
    least = -(1 << (element.bits - 1)) if element.kind == "signed" else 0
    if low < least or high > element.maximum:
        value = low if low < least else high
        raise problem(f"{value} does not fit {element}, whose values are {least} to {element.maximum}", "argument")


def array(value: Array, element: ElementType | None, rank: int = 0) -> Tensor:
    """Return a NumPy array as a constant of at least `rank` dimensions. Reuse the constant if a large array comes again."""
    scope = current()
    if value.nbytes < LARGE:
        return new_array(value, element, rank)
    known = scope.trace.arrays.get(id(value))
    if known is not None and known[0] is value:
        found, data = known[1], known[1].value.constant
        is_same = found.ndim >= rank and (element is None or found.element == element) and found.scope.active
        if is_same and data is not None and data.tobytes() == value.astype(data.dtype).tobytes():
            return found
    found = new_array(value, element, rank)
    scope.trace.arrays[id(value)] = value, found
    return found


def new_array(value: Array, element: ElementType | None, rank: int) -> Tensor:
    target = None
    if value.dtype == np.float64:
        target = element if element is not None and element.is_float else F32
    elif value.dtype == np.int64:
        target = element if element is not None and (element.is_float or element.is_integer) else I32
    if target is not None:
        if target.is_integer and value.size:
            in_range(int(value.min()), int(value.max()), target)
        value = value.astype(target.dtype)
    return constant(value.reshape((1,) * max(0, rank - value.ndim) + value.shape), target)


def tensor(value: Any, element: ElementType | None = None, rank: int = 0) -> Tensor:
    """Return `value` as a tensor of at least `rank` dimensions; numbers become `element`."""
    if isinstance(value, Tensor):
        usable(value, current(), None)
        return value if value.ndim >= rank else recorded(lambda t: t.of(t.builder.with_rank(t.value, rank)), value)
    if is_number(value):
        return number(value.item() if isinstance(value, np.generic) else value, element, rank)
    return array(from_python(value), element, rank)


def from_python(value: Any) -> Array:
    """Return an array, or nested lists of numbers, as an array."""
    if isinstance(value, list | tuple):
        if any(isinstance(v, Tensor) for v in value):
            raise problem("a list of tensors is no tensor", "argument", help="tosaic.ops.stack joins them")
        try:
            return np.asarray(value)
        except ValueError as error:
            raise problem(f"a list of uneven lengths is no tensor: {error}", "argument") from None
    if hasattr(type(value), "_no_tensor"):
        raise value._no_tensor()
    if not isinstance(value, np.ndarray | np.generic):
        raise problem(f"{class_of(value)} cannot be a tensor", "argument",
                      help="tensors are made of NumPy arrays and Python numbers", raised=TypeProblem)
    return np.asarray(value)


def operands(*values: Any, operator: str = "this operator") -> list[Tensor]:
    """Return the operands of one elementwise operator in one rank and one element type, by NumPy's promotion, if their shapes
    broadcast."""
    given = [v if isinstance(v, Tensor) or is_number(v) else from_python(v) for v in values]
    element = common_element(given, operator)
    rank = len(broadcast(*(v.shape if isinstance(v, Tensor) else np.shape(v) for v in given), operator=operator))
    return [converted(tensor(v, element, rank), element) for v in given]


def common_element(given: Sequence[Any], operator: str = "this operator") -> ElementType | None:
    """Return the element type of all together; None if only bools determine it. A Python number, or an array of one of NumPy's
    default types, only adds its kind: a float makes integers f32, a number makes bools i32."""
    found = [v.element for v in given if isinstance(v, Tensor)]
    found += [BY_STORAGE[v.dtype.name] for v in given if isinstance(v, np.ndarray) and v.dtype.name in BY_STORAGE
              and v.dtype.name not in ("float64", "int64")]
    weak = {np.asarray(v).dtype.kind for v in given if not isinstance(v, Tensor)
            and (is_number(v) or np.asarray(v).dtype.name in ("float64", "int64"))}
    element = promoted(found, operator) if found else None
    if "f" in weak and (element is None or not element.is_float):
        return F32
    if "i" in weak and (element is None or element.kind == "bool"):
        return I32
    return element


def converted(x: Tensor, element: ElementType | None) -> Tensor:
    """Return x in that element type."""
    return x if element is None or x.element == element else recorded(lambda t: t.cast(element), x)


def broadcast(*shapes: Sequence[int], operator: str = "this operator") -> tuple[int, ...]:
    """Return the shape that all of `shapes` broadcast to."""
    try:
        return np.broadcast_shapes(*(tuple(s) for s in shapes))
    except ValueError:
        raise problem(f"{operator} of shapes {' and '.join(str(list(s)) for s in shapes)}: they do not broadcast",
                      "shape", help="extents must be equal or 1, counted from the last dimension") from None


def extents(values: Any, size: int | None = None) -> tuple[int, ...]:
    """Return a shape from an int or a sequence of ints; one -1 is the extent that the others leave of `size` elements."""
    try:
        dims = [operators.index(n) for n in ([values] if isinstance(values, int | np.integer) else values)]
    except Problem:
        raise
    except TypeError:
        raise problem(f"a shape is a list of ints, not {values!r}", "argument", raised=TypeProblem) from None
    if size is not None and -1 in dims:
        dims[dims.index(-1)] = rest_of(dims, size)
    if any(n < 0 for n in dims):
        raise problem(f"shape {dims} has an extent below 0", "shape")
    return tuple(dims)


def rest_of(dims: Sequence[int], size: int) -> int:
    """Return the extent that -1 denotes in the shape of `size` elements. Raise Problem if none or several fit."""
    if dims.count(-1) > 1:
        raise problem(f"shape {list(dims)} has {dims.count(-1)} extents of -1", "shape",
                      help="only one can follow from the others")
    others = math.prod(n for n in dims if n != -1)
    if others > 0 and size % others == 0:
        return size // others
    why = "any extent fits" if not others and not size else f"{size} is no multiple of {others}"
    raise problem(f"{size} elements do not fill shape {list(dims)}: {why}", "shape")


def axis_of(axis: int, rank: int) -> int:
    """Return `axis` counted from the front."""
    if not isinstance(axis, int | np.integer) or not -rank <= axis < rank:
        raise problem(f"axis {axis} is outside a tensor of {rank} dimensions", "argument", raised=AxisProblem)
    return int(axis) % rank


def static(type: TensorType) -> TensorType:
    """Return the type itself; a traced tensor's extents are always known."""
    if not type.is_static:
        raise problem(f"{type} has extents that are not known when tracing", "shape")
    return type
