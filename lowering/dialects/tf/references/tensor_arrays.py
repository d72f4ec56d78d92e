"""Arrays of tensors, as lists that the flow carries, and the list operations that read or write several elements at once."""
from __future__ import annotations

from typing import Any

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import find, required
from ....graph.graph import Operation
from ....graph.types import Array
from ..values import TensorList
from .indexing import checked
from .lists import element, in_range, set_item, shape_of
from .table import reference

ANY: tuple[int, ...] = (-1,)


# ---- lists -----------------------------------------------------------------------------------------------------------
def elements(items: TensorList, shape: tuple[int, ...] = ANY) -> list[Array]:
    return [element(items, i, shape) for i in range(len(items.items))]


def with_rows(items: TensorList, x: Array, indices: Array) -> TensorList:
    found = list(items.items)
    for i, row in zip(checked(indices, len(found)).tolist(), x, strict=True):
        found[i] = row
    return items.replaced(tuple(found))


def split_rows(x: Array, lengths: Array) -> tuple[Array, ...]:
    if lengths.sum() != len(x):
        raise Problem(f"{len(x)} rows are split into {lengths.tolist()}", kind="argument")
    return tuple(np.split(x, np.cumsum(lengths)[:-1]))


@reference("tf.TensorListElementShape")
def element_shape(operation: Operation, items: TensorList) -> Array:
    known = next((i.shape for i in items.items if i is not None), items.shape)
    return np.array(known, np.int32)


@reference("tf.TensorListGather")
def gather(operation: Operation, items: TensorList, indices: Array, shape: Array) -> Array:
    return np.stack([element(items, in_range(items, i), shape_of(shape)) for i in indices])


@reference("tf.TensorListScatter", "tf.TensorListScatterV2")
def scatter(operation: Operation, x: Array, indices: Array, shape: Array, *count: Array) -> TensorList:
    size = int(count[0]) if count and int(count[0]) >= 0 else int(indices.max(initial=-1)) + 1
    return with_rows(TensorList((None,) * size, x.shape[1:], x.dtype), x, indices)


@reference("tf.TensorListScatterIntoExistingList")
def scatter_into(operation: Operation, items: TensorList, x: Array, indices: Array) -> TensorList:
    return with_rows(items, x, indices)


@reference("tf.TensorListConcatV2", "tf.TensorListConcat")
def concat(operation: Operation, items: TensorList, *rest: Array) -> tuple[Array, Array]:
    found = elements(items, shape_of(rest[0]) if rest else ANY)
    return np.concatenate(found), np.array([len(x) for x in found], np.int64)


@reference("tf.TensorListSplit")
def split(operation: Operation, x: Array, shape: Array, lengths: Array) -> TensorList:
    return TensorList(split_rows(x, lengths), shape_of(shape), x.dtype)


@reference("tf.TensorListResize")
def resize(operation: Operation, items: TensorList, size: Array) -> TensorList:
    return items.replaced((*items.items, *(None,) * int(size))[:int(size)])


@reference("tf.TensorListConcatLists")
def concat_lists(operation: Operation, a: TensorList, b: TensorList) -> TensorList:
    return a.replaced((*a.items, *b.items))


# ---- arrays ----------------------------------------------------------------------------------------------------------
@reference("tf.TensorArrayV3")
def make(operation: Operation, size: Array) -> tuple[TensorList, TensorList]:
    dims: Any = getattr(find(operation, "element_shape"), "dims", None)
    shape = ANY if dims is None else tuple(-1 if n is None else int(n) for n in dims)
    made = TensorList((None,) * int(size), shape, required(operation, "dtype").dtype)
    return made, made


@reference("tf.TensorArrayWriteV3")
def write(operation: Operation, handle: Any, index: Array, value: Array, flow: TensorList) -> TensorList:
    return set_item(operation, flow, index, value)


@reference("tf.TensorArrayReadV3")
def read(operation: Operation, handle: Any, index: Array, flow: TensorList) -> Array:
    return element(flow, in_range(flow, index), ANY)


@reference("tf.TensorArrayGatherV3")
def gather_array(operation: Operation, handle: Any, indices: Array, flow: TensorList) -> Array:
    return np.stack([element(flow, in_range(flow, i), ANY) for i in indices])


@reference("tf.TensorArrayScatterV3")
def scatter_array(operation: Operation, handle: Any, indices: Array, x: Array, flow: TensorList) -> TensorList:
    return with_rows(flow, x, indices)


@reference("tf.TensorArrayConcatV3")
def concat_array(operation: Operation, handle: Any, flow: TensorList) -> tuple[Array, Array]:
    found = elements(flow)
    return np.concatenate(found), np.array([len(x) for x in found], np.int64)


@reference("tf.TensorArraySplitV3")
def split_array(operation: Operation, handle: Any, x: Array, lengths: Array, flow: TensorList) -> TensorList:
    return flow.replaced(split_rows(x, lengths))


@reference("tf.TensorArraySizeV3")
def size(operation: Operation, handle: Any, flow: TensorList) -> Array:
    return np.array(len(flow.items), np.int32)


@reference("tf.TensorArrayCloseV3")
def close(operation: Operation, handle: Any) -> tuple[()]:
    return ()
