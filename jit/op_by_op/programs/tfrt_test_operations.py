"""The operations of `tfrt_test` on the cpu handler, with their metadata functions, for tests of kernel programs.

The design document uses the prefix `test.` for them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....lowering.graph.types import ELEMENT_TYPES, Array
from ....runtime.errors import Problem
from ....runtime.op_by_op.attributes import Attribute, FrozenOpAttrs
from ....runtime.op_by_op.handle import TensorHandle
from ....runtime.op_by_op.metadata import TensorMetadata
from ....runtime.op_by_op.operation import OpCall
from .execution import Execution
from .kernels import filled
from .tensor_printing import tensor_text

Metadata = Sequence[TensorMetadata]
PREFIXES = ("tfrt_test.", "test.")


def register_operations(execution: Execution) -> None:
    """Register the operations in the runtime of a program."""
    operations = Operations(execution)
    register = execution.runtime.register
    for prefix in PREFIXES:
        register(f"{prefix}create_dense_tensor", create_dense, created_dense)
        register(f"{prefix}create_from_scalar", operations.create_from_scalar, created_scalar)
        register(f"{prefix}add", operations.add, same("add"))
        register(f"{prefix}equal", lambda call: call.arrays[0] == call.arrays[1], compared)
        register(f"{prefix}argmax", argmax, found_index)
        register(f"{prefix}reduce_mean", reduce_mean, reduced)
        register(f"{prefix}relu", lambda call: np.maximum(call.arrays[0], 0), first)
        register(f"{prefix}cast", cast, casted)
        register(f"{prefix}matmul", matmul, multiplied)
        register(f"{prefix}odd_collector", lambda call: call.arrays[0][call.arrays[0] % 2 == 1].copy())
        register(f"{prefix}async.noop", operations.later, first)
        register(f"{prefix}async.noop_no_md", operations.later)
        register(f"{prefix}error.tensor", fail, first)
        register(f"{prefix}print", operations.print, nothing, side_effect=True)


class Operations:
    """Operations that need access to the execution that runs them."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution

    def create_from_scalar(self, call: OpCall) -> Array:
        entry = entry_of(call.attributes, "value")
        return self.execution.scalars.make(shape_of(call.attributes), entry.value, dtype_of(entry))

    def add(self, call: OpCall) -> Array:
        """Return the sum; the sum of two scalar tensors is a scalar tensor, too."""
        a, b = call.arrays
        scalars = self.execution.scalars
        if a in scalars and b in scalars and a.size:
            return scalars.make(a.shape, a.reshape(-1)[0] + b.reshape(-1)[0], a.dtype)
        return np.asarray(a + b)

    def later(self, call: OpCall) -> TensorHandle:
        """Return the argument, when the task has its turn."""
        found, resolver = call.runtime.pending(call.metadata[0] if call.metadata else None)
        argument = call.arguments[0].copy()
        self.execution.work.add(lambda: found._follow(argument), resolver.fail)
        return found

    def print(self, call: OpCall) -> tuple[()]:
        for array in call.arrays:
            self.execution.write(tensor_text(array, self.execution.scalars))
        return ()


# Attributes

def entry_of(attributes: FrozenOpAttrs, name: str) -> Attribute:
    """Return an attribute with its type. Raise a Problem if it is missing."""
    if name not in attributes:
        attributes.get(name)  # raises if the attribute is missing
    return dict(attributes.items())[name]


def dtype_of(entry: Attribute) -> np.dtype[Any]:
    """Return the dtype of numbers of an attribute's type."""
    name = {"bool": "i1"}.get(entry.type, entry.type)
    if name not in ELEMENT_TYPES:
        raise Problem(f"a tensor is made of numbers, not of {entry.kind}", kind="attribute")
    return ELEMENT_TYPES[name].dtype


def shape_of(attributes: FrozenOpAttrs) -> tuple[int, ...]:
    shape = attributes.get_array("shape")
    if any(isinstance(n, bool | str | float) or n < 0 for n in shape):
        raise Problem(f"the attribute shape has extents that are not negative, not {list(shape)}", kind="attribute")
    return tuple(shape)


def axis_of(attributes: FrozenOpAttrs, rank: int) -> int:
    axis: int = attributes.get("axis", "i32")
    if not -rank <= axis < rank:
        raise Problem(f"axis {axis} is outside rank {rank}", kind="shape")
    return axis % rank


# Metadata functions

def created_dense(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    return TensorMetadata(dtype_of(entry_of(attributes, "values")), shape_of(attributes))


def created_scalar(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    return TensorMetadata(dtype_of(entry_of(attributes, "value")), shape_of(attributes))


def first(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    expect(inputs, 1)
    return inputs[0]


def nothing(inputs: Metadata, attributes: FrozenOpAttrs) -> tuple[()]:
    return ()


def expect(inputs: Metadata, count: int) -> None:
    if len(inputs) != count:
        raise Problem(f"takes {count} argument{'s' * (count != 1)}, found {len(inputs)}", kind="argument")


def same(name: str) -> Callable[[Metadata, FrozenOpAttrs], TensorMetadata]:
    """Make the metadata function of two arguments of one dtype and shape, which are the result's."""
    def metadata(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
        expect(inputs, 2)
        a, b = inputs
        if a.dtype != b.dtype:
            raise Problem(f"incompatible dtypes for tfrt_test.{name}: {a} and {b}", kind="type")
        if a.shape != b.shape:
            raise Problem(f"arguments of tfrt_test.{name} must have same shape, not {a} and {b}", kind="shape")
        return a
    return metadata


def compared(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    return TensorMetadata(np.dtype(bool), same("equal")(inputs, attributes).shape)


def found_index(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    return TensorMetadata(np.dtype(np.int32), reduced(inputs, attributes).shape)


def reduced(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    expect(inputs, 1)
    shape = inputs[0].shape
    axis = axis_of(attributes, len(shape))
    if not shape[axis]:
        raise Problem(f"axis {axis} of {inputs[0]} has no elements", kind="shape")
    return TensorMetadata(inputs[0].dtype, shape[:axis] + shape[axis + 1:])


def casted(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    expect(inputs, 1)
    return TensorMetadata(target(attributes), inputs[0].shape)


def target(attributes: FrozenOpAttrs) -> np.dtype[Any]:
    """Return the dtype to cast to, from a type, or its name as a string."""
    wanted = attributes.get("type")
    if isinstance(wanted, np.dtype):
        return wanted
    if wanted not in ELEMENT_TYPES:
        raise Problem(f"there is no type {wanted}", kind="attribute", help="f16, f32, i32 and so on")
    return ELEMENT_TYPES[wanted].dtype


def multiplied(inputs: Metadata, attributes: FrozenOpAttrs) -> TensorMetadata:
    expect(inputs, 2)
    a, b = inputs
    if a.dtype != b.dtype:
        raise Problem(f"incompatible dtypes for tfrt_test.matmul: {a} and {b}", kind="type")
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise Problem(f"arguments of tfrt_test.matmul are matrices, not {a} and {b}", kind="shape")
    left, right = transposed(attributes, "transpose_a", a.shape), transposed(attributes, "transpose_b", b.shape)
    if left[1] != right[0]:
        raise Problem(f"tfrt_test.matmul arguments have incompatible shapes: {a} and {b}", kind="shape")
    return TensorMetadata(a.dtype, (left[0], right[1]))


def transposed(attributes: FrozenOpAttrs, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[::-1] if name in attributes and attributes.get(name) else shape


# Dispatch functions

def create_dense(call: OpCall) -> Array:
    entry = entry_of(call.attributes, "values")
    values = entry.value if entry.is_array else (entry.value,)
    return filled(shape_of(call.attributes), values, dtype_of(entry))


def argmax(call: OpCall) -> Array:
    array = call.arrays[0]
    return np.asarray(np.argmax(array, axis_of(call.attributes, array.ndim)), np.int32)


def reduce_mean(call: OpCall) -> Array:
    """Return the mean in the argument's type: integers are rounded towards zero."""
    array = call.arrays[0]
    mean = np.mean(array, axis_of(call.attributes, array.ndim), dtype=np.float64)
    return np.asarray(np.trunc(mean) if array.dtype.kind in "iu" else mean, array.dtype)


def cast(call: OpCall) -> Array:
    with np.errstate(all="ignore"):
        return call.arrays[0].astype(target(call.attributes))


def matmul(call: OpCall) -> Array:
    a, b = call.arrays
    left = a.T if "transpose_a" in call.attributes and call.attributes.get("transpose_a") else a
    right = b.T if "transpose_b" in call.attributes and call.attributes.get("transpose_b") else b
    return np.asarray(left @ right)


def fail(call: OpCall) -> Array:
    raise Problem("error from tfrt_test.error.tensor implementation" if call.op_name.startswith("tfrt_test")
                  else "error from test.error.tensor implementation", kind="kernel")
