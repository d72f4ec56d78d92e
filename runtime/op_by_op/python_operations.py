"""Operations that are not compiled: those whose results' shapes depend on data, those with effects, and asynchronous ones for
tests.

    reshape (by a tensor), unique, nonzero, argwhere     no metadata function
    variable.read, variable.write                        attribute `name`; a write declares the variable if there is none
    to_dense                                             a tensor of numbers, whatever its kind, as a dense one
    print, assert                                        attributes `prefix`, `message`
    async.noop, async.noop_no_md                         their argument, later; with and without a metadata function

TOSA's own operators of variables are in `variable_operations`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import Tensor
from ..errors import Problem, TypeProblem, ValueProblem, printable
from ..variable import Declaration
from .attributes import FrozenOpAttrs
from .logging_handler import tensor_text
from .metadata import TensorMetadata
from .operation import OpCall
from .stateful_operations import register_variables
from .tensor_kinds import STRINGS

if TYPE_CHECKING:
    from .core import CoreRuntime

UNIQUE = ("return_index", "return_inverse", "return_counts")


def register_all(runtime: CoreRuntime) -> None:
    """Add these operations to a runtime."""
    runtime.register("reshape/2", reshape)
    runtime.register("unique", unique)
    runtime.register("nonzero", lambda call: np.nonzero(call.arrays[0]))
    runtime.register("argwhere", lambda call: np.argwhere(call.arrays[0]))
    runtime.register("variable.read", read, side_effect=True)
    runtime.register("variable.write", write, nothing, side_effect=True)
    runtime.register("to_dense", to_dense, same)
    runtime.register("print", show, nothing, side_effect=True)
    runtime.register("assert", check, nothing, side_effect=True)
    runtime.register("async.noop", noop, same, is_long=True)
    runtime.register("async.noop_no_md", noop, is_long=True)
    register_variables(runtime)


def arguments_of(call: OpCall, count: int) -> Sequence[Any]:
    """Return the arrays of a call, which must have `count` arguments."""
    if len(call.arguments) != count:
        raise TypeProblem(f"{call.op_name} takes {count} arguments, not {len(call.arguments)}", kind="argument")
    return call.arrays


def reshape(call: OpCall) -> Any:
    """Return the first argument in the shape that the second one lists; one extent may be -1."""
    x, shape = arguments_of(call, 2)
    if shape.dtype.kind not in "iu" or shape.ndim > 1:
        raise TypeProblem(f"a shape is a list of integers, not {TensorMetadata.of(shape)}", kind="type")
    wanted = [int(n) for n in shape.reshape(-1)]
    try:
        return call.arguments[0]._array.reshape(wanted)  # type: ignore[union-attr]
    except ValueError:
        raise ValueProblem(f"{TensorMetadata.of(x)} has {x.size} elements, which shape {wanted} does not hold",
                           kind="shape") from None


def unique(call: OpCall) -> Any:
    """Return NumPy's result: the sorted unique values, and the arrays that the attributes request."""
    x, = arguments_of(call, 1)
    asked: dict[str, Any] = {name: bool(call.attributes.get(name)) for name in UNIQUE if name in call.attributes}
    return np.unique(x, **asked)


def nothing(inputs: Sequence[TensorMetadata], attributes: FrozenOpAttrs) -> Sequence[TensorMetadata]:
    return ()


def same(inputs: Sequence[TensorMetadata], attributes: FrozenOpAttrs) -> Sequence[TensorMetadata]:
    return inputs


def noop(call: OpCall) -> Any:
    return tuple(a._array for a in call.arguments)


def to_dense(call: OpCall) -> Any:
    x, = arguments_of(call, 1)
    if x.dtype == STRINGS:
        raise TypeProblem("a tensor of strings has no numbers", kind="type")
    return x.copy()


def read(call: OpCall) -> Any:
    arguments_of(call, 0)
    return call.runtime.context.read(call.attributes.get("name", "string"))


def write(call: OpCall) -> Any:
    value, = arguments_of(call, 1)
    name, context = call.attributes.get("name", "string"), call.runtime.context
    context.declare([Declaration(Tensor(name, value.dtype.name, value.shape))])
    context.set(name, value)
    return ()


def show(call: OpCall) -> Any:
    prefix = call.attributes.get("prefix", "string") if "prefix" in call.attributes else ""
    for argument in call.arguments:
        print(printable(f"{prefix}{tensor_text(argument)}"))
    return ()


def check(call: OpCall) -> Any:
    condition, = arguments_of(call, 1)
    if not condition.all():
        message = call.attributes.get("message", "string") if "message" in call.attributes else "it does not hold"
        raise Problem(f"assertion failed: {message}", kind="assertion")
    return ()

