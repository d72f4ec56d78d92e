"""Lists of tensors: values like any other; every change creates a new list."""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import flag
from ....graph.graph import Operation
from ....graph.types import Array, TensorType
from ..types import TensorFlowTensor
from ..values import TensorList
from .table import reference


def element_dtype(operation: Operation) -> np.dtype[np.generic]:
    """Return the dtype of a list's elements, from the type of the result."""
    type = operation.results[0].type
    subtypes = type.element.subtypes if isinstance(type, TensorFlowTensor) else ()
    return subtypes[0].element.dtype if subtypes and isinstance(subtypes[0], TensorType) else np.dtype(np.float32)


def shape_of(shape: Array) -> tuple[int, ...]:
    """Return an element's shape; -1 for an unknown extent, and a scalar operand for an unknown rank."""
    return tuple(int(n) for n in shape) if shape.ndim else ()


@reference("tf.TensorListReserve", "tf.EmptyTensorList")
def reserve(operation: Operation, shape: Array, count: Array) -> TensorList:
    is_empty = operation.op.spelling == "tf.EmptyTensorList"  # type: ignore[attr-defined]
    return TensorList((None,) * (0 if is_empty else int(count)), shape_of(shape), element_dtype(operation))


@reference("tf.TensorListFromTensor")
def from_tensor(operation: Operation, x: Array, shape: Array) -> TensorList:
    return TensorList(tuple(x), tuple(x.shape[1:]), x.dtype)


@reference("tf.TensorListGetItem")
def get_item(operation: Operation, items: TensorList, index: Array, shape: Array) -> Array:
    return element(items, in_range(items, index), shape_of(shape))


@reference("tf.TensorListSetItem")
def set_item(operation: Operation, items: TensorList, index: Array, value: Array) -> TensorList:
    if flag(operation, "resize_if_index_out_of_bounds"):
        items = items.replaced((*items.items, *(None,) * (int(index) + 1 - len(items.items))))
    at = in_range(items, index)
    return items.replaced((*items.items[:at], value, *items.items[at + 1:]))


@reference("tf.TensorListPushBack")
def push_back(operation: Operation, items: TensorList, value: Array) -> TensorList:
    return items.replaced((*items.items, value))


@reference("tf.TensorListPopBack")
def pop_back(operation: Operation, items: TensorList, shape: Array) -> tuple[TensorList, Array]:
    last = in_range(items, np.array(len(items.items) - 1))
    return items.replaced(items.items[:-1]), element(items, last, shape_of(shape))


@reference("tf.TensorListLength")
def length(operation: Operation, items: TensorList) -> Array:
    return np.array(len(items.items), np.int32)


@reference("tf.TensorListStack")
def stack(operation: Operation, items: TensorList, shape: Array) -> Array:
    found = [element(items, i, shape_of(shape)) for i in range(len(items.items))]
    return np.stack(found) if found else np.zeros((0, *items.shape), items.dtype)


def in_range(items: TensorList, index: Array) -> int:
    at = int(index)
    if not 0 <= at < len(items.items):
        raise Problem(f"element {at} of a list of {len(items.items)}", kind="argument")
    return at


def element(items: TensorList, at: int, shape: tuple[int, ...]) -> Array:
    """Return an element; zeros if it was never set."""
    found = items.items[at]
    if found is not None:
        return found
    known = next((i.shape for i in items.items if i is not None), None)
    extents = known if known is not None else shape if -1 not in shape and shape else items.shape
    if any(n < 0 for n in extents):
        raise Problem(f"element {at} of the list was never set, and its shape is not known", kind="argument")
    return np.zeros(extents, items.dtype)
