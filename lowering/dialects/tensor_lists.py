"""Lists of tensors of one type while a graph becomes TOSA: one tensor [N, ...]; every change creates a new one.

A list of N elements is N rows. A row whose index is known only at run time is read by GATHER and written by SCATTER. Rows at
known indices stay one CONCAT.
"""
from __future__ import annotations

import math
from dataclasses import replace

from ...runtime.errors import require
from ..formulas.indexing import gathered, index
from ..formulas.layout import part
from ..graph.graph import Value
from ..graph.types import TensorType
from .data import ListOfTensors
from .emitter import Emitter
from .tosa.layout import Concat


def tensor_of(e: Emitter, items: ListOfTensors) -> Value:
    """Return all elements as one tensor: zeros if none was set."""
    return items.items if items.items is not None else e.zeros(items.type)


def element_of(items: ListOfTensors, value: Value) -> ListOfTensors:
    """Return the list, typed for a value that is put into it."""
    if items.element is None:
        return replace(items, element=value.tensor)
    require(items.element == value.type, f"a list of {items.element} cannot hold {value.type}", kind="shape")
    return items


def list_of(x: Value) -> ListOfTensors:
    """Return a tensor's rows as a list."""
    require(x.tensor.rank > 0, f"{x.type} has no rows to make a list of", kind="shape")
    type = TensorType(x.tensor.dims[1:], x.tensor.element)
    return ListOfTensors(x.tensor.dims[0], type, x if x.tensor.size else None)


def element_at(e: Emitter, items: ListOfTensors, place: Value) -> Value:
    at = as_int(place)
    require(items.count > 0 and (at is None or 0 <= at < items.count), f"element {at} of a list of {items.count} is read",
            kind="shape")
    if items.items is None:
        return e.zeros(TensorType(items.type.dims[1:], items.type.element))
    return gathered(e, items.items, e.reshape(place, ()), 0) if at is None else e.reshape(
        part(e, items.items, 0, at, at + 1), items.type.dims[1:])


def with_element(e: Emitter, items: ListOfTensors, place: Value, value: Value) -> ListOfTensors:
    items, at = element_of(items, value), as_int(place)
    require(items.count > 0 and (at is None or 0 <= at < items.count), f"element {at} of a list of {items.count} is set",
            kind="shape")
    x = tensor_of(e, items)
    if at is not None:
        row = e.reshape(value, (1, *x.tensor.dims[1:]))
        return items.with_items(e.concat([*cut(e, x, 0, at), row, *cut(e, x, at + 1, items.count)], 0))
    columns = math.prod(x.tensor.dims[1:])
    rows = e("scatter", e.reshape(x, (1, items.count, columns)), e.reshape(index(e, place), (1, 1)),
             e.reshape(value, (1, 1, columns)))
    return items.with_items(e.reshape(rows, x.tensor.dims))


def cut(e: Emitter, x: Value, start: int, stop: int) -> list[Value]:
    """Return rows of x as the parts that x was concatenated from: rows that are set one by one stay one CONCAT."""
    made = e.definitions.get(x)
    if made is None or not isinstance(made.op, Concat) or made.op.axis:
        return [part(e, x, 0, start, stop)] if start < stop else []
    found, first = [], 0
    for operand in made.operands:
        low, high = max(start - first, 0), min(stop - first, operand.tensor.dims[0])
        found += [part(e, operand, 0, low, high)] if low < high else []
        first += operand.tensor.dims[0]
    return found


def as_int(value: Value) -> int | None:
    return None if value.constant is None else int(value.constant.item())
