"""Lists of tensors (TensorList*) and arrays of them (TensorArray*): one tensor [N, ...]; every change creates a new one.

A list of N elements is N rows. A row whose index is known only at run time is read by GATHER and written by SCATTER. Rows at
known indices stay one CONCAT. The type of the elements may be known only when the first one is set: until then the list has no
`items`, and a read uses the reader's shape.
"""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .....runtime.errors import Problem
from ....formulas.indexing import gathered, index
from ....graph.foreign import find, flag
from ....graph.graph import Operation, Value
from ....graph.types import F32, I64, ElementType, TensorType
from ...data import ListOfTensors
from ...emitter import Emitter, integers, known
from ...tensor_lists import as_int, cut, element_at, element_of, list_of, tensor_of, with_element
from ..types import TensorFlowTensor
from .constants import result_element
from .layout import require
from .table import legalization


# ---- types of elements -----------------------------------------------------------------------------------------------
def list_element(operation: Operation) -> ElementType:
    """Return the element type of a list that is created here."""
    declared = find(operation, "element_dtype") or find(operation, "dtype")
    type = operation.results[0].type
    subtypes = type.element.subtypes if isinstance(type, TensorFlowTensor) else ()
    found = subtypes[0].element if subtypes and isinstance(subtypes[0], TensorType) else declared
    return found if isinstance(found, ElementType) else F32


def element_type(shape: Value, element: ElementType) -> TensorType | None:
    """Return the type of the elements if their shape is fully known: -1 is an unknown extent, and a scalar an unknown rank."""
    if shape.constant is None or shape.tensor.rank != 1 or (shape.constant < 0).any():
        return None
    return TensorType(tuple(int(n) for n in shape.constant), element)


def typed(items: ListOfTensors, operation: Operation, shape: Value | None = None, number: int = 0) -> ListOfTensors:
    """Return the list with the type of its elements, from the list or its reader."""
    if items.element is not None:
        return items
    result = operation.results[number].type
    found = element_type(shape, result_element(operation, number=number)) if shape is not None else None
    if found is None and isinstance(result, TensorType) and result.is_static and shape is not None:
        found = result
    return replace(items, element=found)


# ---- creation --------------------------------------------------------------------------------------------------------
@legalization("tf.TensorListReserve")
def reserve(e: Emitter, operation: Operation, shape: Value, count: Value) -> ListOfTensors:
    return ListOfTensors(integers(count, "the length of the list")[0], element_type(shape, list_element(operation)))


@legalization("tf.EmptyTensorList")
def empty(e: Emitter, operation: Operation, shape: Value, most: Value) -> ListOfTensors:
    return ListOfTensors(0, element_type(shape, list_element(operation)))


@legalization("tf.TensorListFromTensor")
def from_tensor(e: Emitter, operation: Operation, x: Value, shape: Value) -> ListOfTensors:
    return list_of(x)


# ---- reading ---------------------------------------------------------------------------------------------------------
@legalization("tf.TensorListGetItem")
def get_item(e: Emitter, operation: Operation, items: ListOfTensors, place: Value, shape: Value) -> Value:
    return element_at(e, typed(items, operation, shape), place)


@legalization("tf.TensorListLength")
def length(e: Emitter, operation: Operation, items: ListOfTensors) -> Value:
    return e.constant(np.int32(items.count))


@legalization("tf.TensorListElementShape")
def element_shape(e: Emitter, operation: Operation, items: ListOfTensors) -> Value:
    return e.constant(np.array(items.type.dims[1:], result_element(operation).dtype))


@legalization("tf.TensorListStack")
def stack(e: Emitter, operation: Operation, items: ListOfTensors, shape: Value) -> Value:
    return tensor_of(e, stacked_type(items, operation, shape))


def stacked_type(items: ListOfTensors, operation: Operation, shape: Value | None) -> ListOfTensors:
    """Return the list with the type of its elements, which is that of the result without its first axis if nothing else gives
    it."""
    result = operation.results[0].type
    found = typed(items, operation) if shape is None else replace(
        items, element=items.element or element_type(shape, result_element(operation)))
    if found.element is None and isinstance(result, TensorType) and result.is_static and result.rank:
        return replace(found, element=TensorType(result.dims[1:], result.element))
    return found


@legalization("tf.TensorListGather")
def gather(e: Emitter, operation: Operation, items: ListOfTensors, indices: Value, shape: Value) -> Value:
    return gathered(e, tensor_of(e, stacked_type(items, operation, shape)), indices, 0)


@legalization("tf.TensorListConcatV2", "tf.TensorListConcat")
def concat(e: Emitter, operation: Operation, items: ListOfTensors, *rest: Value) -> tuple[Value, Value]:
    """Return the concatenated elements, and the extent of each along its first axis."""
    return concatenated(e, items)


def concatenated(e: Emitter, items: ListOfTensors) -> tuple[Value, Value]:
    x = tensor_of(e, items)
    require(x.tensor.rank > 1, "tensors of rank 0 cannot be put one after the other")
    count, size, *others = x.tensor.dims
    return e.reshape(x, (count * size, *others)), e.constant(np.full(count, size, np.int64), I64)


# ---- writing ---------------------------------------------------------------------------------------------------------
@legalization("tf.TensorListSetItem")
def set_item(e: Emitter, operation: Operation, items: ListOfTensors, place: Value, value: Value) -> ListOfTensors:
    at = as_int(place)
    if flag(operation, "resize_if_index_out_of_bounds") and at is not None and at >= items.count:
        items = resized(e, items, at + 1)
    return with_element(e, items, place, value)


@legalization("tf.TensorListPushBack")
def push_back(e: Emitter, operation: Operation, items: ListOfTensors, value: Value) -> ListOfTensors:
    items = element_of(items, value)
    row = e.reshape(value, (1, *value.tensor.dims))
    if not items.count:
        return items.with_items(row)
    return items.with_items(e.concat([*cut(e, tensor_of(e, items), 0, items.count), row], 0))


@legalization("tf.TensorListPopBack")
def pop_back(e: Emitter, operation: Operation, items: ListOfTensors, shape: Value) -> tuple[ListOfTensors, Value]:
    items = typed(items, operation, shape, 1)
    last = element_at(e, items, e.constant(np.int32(items.count - 1)))
    return resized(e, items, items.count - 1), last


@legalization("tf.TensorListResize")
def resize(e: Emitter, operation: Operation, items: ListOfTensors, size: Value) -> ListOfTensors:
    return resized(e, items, integers(size, "the length of the list")[0])


def resized(e: Emitter, items: ListOfTensors, count: int) -> ListOfTensors:
    """Return the first elements, or all of them followed by zeros."""
    if items.items is None or not count:
        return ListOfTensors(count, items.element)
    parts = cut(e, items.items, 0, min(count, items.count))
    if count > items.count:
        parts.append(e.zeros(TensorType((count - items.count, *items.type.dims[1:]), items.type.element)))
    return items.with_items(e.concat(parts, 0))


@legalization("tf.TensorListConcatLists")
def concat_lists(e: Emitter, operation: Operation, a: ListOfTensors, b: ListOfTensors) -> ListOfTensors:
    element = a.element or b.element
    if a.items is None and b.items is None:
        return ListOfTensors(a.count + b.count, element)
    parts = [tensor_of(e, replace(x, element=element)) for x in (a, b) if x.count]
    return list_of(e.concat(parts, 0))


@legalization("tf.TensorListScatter", "tf.TensorListScatterV2")
def scatter(e: Emitter, operation: Operation, x: Value, indices: Value, shape: Value, *count: Value) -> ListOfTensors:
    """Return a list of length `count`, or as long as the greatest index needs; elements without an index are zeros."""
    given = integers(count[0], "the length of the list")[0] if count else -1
    size = given if given >= 0 else int(known(indices, "which elements are set").max(initial=-1)) + 1
    return scattered(e, ListOfTensors(size, TensorType(x.tensor.dims[1:], x.tensor.element)), x, indices)


@legalization("tf.TensorListScatterIntoExistingList")
def scatter_into(e: Emitter, operation: Operation, items: ListOfTensors, x: Value, indices: Value) -> ListOfTensors:
    return scattered(e, items, x, indices)


def scattered(e: Emitter, items: ListOfTensors, x: Value, indices: Value) -> ListOfTensors:
    """Return the list with the rows of x at the indices."""
    width = indices.tensor.size
    require(x.tensor.rank > 0 and x.tensor.dims[0] == width, f"{x.type} has no {width} rows")
    if items.element is None:
        items = replace(items, element=TensorType(x.tensor.dims[1:], x.tensor.element))
    require(items.type.dims[1:] == x.tensor.dims[1:], f"a list of {items.element} cannot hold the rows of {x.type}")
    if indices.constant is not None and np.array_equal(indices.constant.reshape(-1), np.arange(items.count)):
        return list_of(x)
    if not x.tensor.size:
        return items
    require(items.count > 0, "elements of a list of 0 are set")
    base, columns = tensor_of(e, items), math.prod(x.tensor.dims[1:])
    rows = e.reshape(base, (1, items.count, columns))
    numbers, values = e.reshape(index(e, indices), (1, width)), e.reshape(x, (1, width, columns))
    for start in range(0, width, items.count):
        size = min(items.count, width - start)
        rows = e("scatter", rows, e.slice(numbers, (0, start), (1, size)), e.slice(values, (0, start, 0), (1, size, columns)))
    return items.with_items(e.reshape(rows, base.tensor.dims))


@legalization("tf.TensorListSplit")
def split(e: Emitter, operation: Operation, x: Value, shape: Value, lengths: Value) -> ListOfTensors:
    return split_rows(e, x, lengths)


def split_rows(e: Emitter, x: Value, lengths: Value) -> ListOfTensors:
    """Return parts of equal length along the first axis."""
    sizes = integers(lengths, "the lengths of the parts")
    if len(set(sizes)) != 1:
        raise Problem(f"a list of parts of lengths {list(sizes)} cannot be compiled", kind="unsupported",
                      help="all elements of a list must have one shape")
    require(sum(sizes) == x.tensor.dims[0], f"{x.type} cannot be split into parts of {list(sizes)}")
    return list_of(e.reshape(x, (len(sizes), sizes[0], *x.tensor.dims[1:])))

