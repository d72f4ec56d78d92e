"""Arrays of tensors (TensorArray*V3), which are lists. A change gives a new `flow`, a number that represents the order of
changes: here the flow is the list itself, and the handle is the list at its creation.
"""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from ....formulas.indexing import gathered
from ....graph.foreign import find
from ....graph.graph import Operation, Value
from ....graph.types import I32, ElementType, TensorType
from ...data import Datum, ListOfTensors, described
from ...emitter import Emitter, integers
from ...tensor_lists import element_at, tensor_of, with_element
from .constants import result_element
from .lists import concatenated, scattered, split_rows, stacked_type, typed
from .table import legalization


def array_of(flow: Datum) -> ListOfTensors:
    if not isinstance(flow, ListOfTensors):
        raise Problem(f"the flow of an array of tensors is {described(flow)}", kind="unsupported",
                      help="it must come from the operation that made the array, or from one that changed it")
    return flow


def known_shape(operation: Operation, name: str, element: ElementType) -> TensorType | None:
    """Return the type of elements whose shape is a property, if the shape is fully known."""
    dims = getattr(find(operation, name), "dims", None)
    if dims is None or any(n is None or n < 0 for n in dims):
        return None
    return TensorType(tuple(dims), element)


def shaped(flow: Datum, operation: Operation) -> ListOfTensors:
    """Return the array, with the reader's shape."""
    items = array_of(flow)
    found = items.element or known_shape(operation, "element_shape", result_element(operation))
    return ListOfTensors(items.count, found, items.items)


@legalization("tf.TensorArrayV3")
def make(e: Emitter, operation: Operation, size: Value) -> tuple[ListOfTensors, ListOfTensors]:
    element = find(operation, "dtype")
    if not isinstance(element, ElementType):
        raise Problem(f"an array of {element} cannot be compiled", kind="unsupported")
    made = ListOfTensors(integers(size, "the size of the array")[0], known_shape(operation, "element_shape", element))
    return made, made


@legalization("tf.TensorArrayWriteV3")
def write(e: Emitter, operation: Operation, handle: Datum, place: Value, value: Value, flow: Datum) -> ListOfTensors:
    return with_element(e, array_of(flow), place, value)


@legalization("tf.TensorArrayReadV3")
def read(e: Emitter, operation: Operation, handle: Datum, place: Value, flow: Datum) -> Value:
    items, declared = array_of(flow), operation.results[0].type
    if items.element is None and isinstance(declared, TensorType) and declared.is_static:
        items = ListOfTensors(items.count, declared)
    return element_at(e, typed(items, operation), place)


@legalization("tf.TensorArrayGatherV3")
def gather(e: Emitter, operation: Operation, handle: Datum, indices: Value, flow: Datum) -> Value:
    x = tensor_of(e, stacked_type(shaped(flow, operation), operation, None))
    every = np.arange(x.tensor.dims[0])
    if indices.constant is not None and np.array_equal(indices.constant, every):
        return x
    return gathered(e, x, indices, 0)


@legalization("tf.TensorArrayScatterV3")
def scatter(e: Emitter, operation: Operation, handle: Datum, indices: Value, value: Value, flow: Datum) -> ListOfTensors:
    return scattered(e, array_of(flow), value, indices)


@legalization("tf.TensorArrayConcatV3")
def concat(e: Emitter, operation: Operation, handle: Datum, flow: Datum) -> tuple[Value, Value]:
    return concatenated(e, array_of(flow))


@legalization("tf.TensorArraySplitV3")
def split(e: Emitter, operation: Operation, handle: Datum, value: Value, lengths: Value, flow: Datum) -> ListOfTensors:
    found = split_rows(e, value, lengths)
    if found.count != array_of(flow).count:
        raise Problem(f"an array of {array_of(flow).count} tensors is split into {found.count}", kind="shape")
    return found


@legalization("tf.TensorArraySizeV3")
def size(e: Emitter, operation: Operation, handle: Datum, flow: Datum) -> Value:
    return e.constant(np.int32(array_of(flow).count), I32)


@legalization("tf.TensorArrayCloseV3")
def close(e: Emitter, operation: Operation, handle: Datum) -> tuple[()]:
    return ()
