"""TOSA's stateful operators by name: a chain orders them, and the variables are those of the runtime's context, which compiled
programs share.

    tosa.variable          sym_name, initial_value (dense), or type and var_shape: declares; the first gives the value
    tosa.variable_read     name
    tosa.variable_write    name

A single operation is no graph: declaring a variable again, with the same type, is not an error, and a write needs no
declaration of its own if the variable exists.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arguments import Tensor
from ..errors import Problem
from ..variables import Declaration
from .attributes import FrozenOpAttrs
from .metadata import TensorMetadata
from .operation import OpCall

if TYPE_CHECKING:
    from .core import CoreRuntime


def register_variables(runtime: CoreRuntime) -> None:
    """Add these operations to a runtime; a read and a write have the older spelling, too."""
    runtime.register("tosa.variable", declare, declared, side_effect=True)
    for between in "_.":
        runtime.register(f"tosa.variable{between}read", read, side_effect=True)
        runtime.register(f"tosa.variable{between}write", write, written, side_effect=True)


def declaration(attributes: FrozenOpAttrs) -> Declaration:
    """Return the declaration in the attributes of tosa.variable."""
    name = attributes.get("sym_name", "string")
    initial: Any = attributes.get("initial_value", "dense") if "initial_value" in attributes else None
    if initial is None and not ("type" in attributes and "var_shape" in attributes):
        raise Problem(f"variable {name} has neither an initial value nor a type and a shape", kind="attribute",
                      help="set initial_value, or type and var_shape")
    dtype = attributes.get("type", "dtype") if "type" in attributes else initial.dtype
    found = TensorMetadata(dtype, attributes.get_array("var_shape") if "var_shape" in attributes else initial.shape)
    if initial is not None and TensorMetadata.of(initial) is not found:
        raise Problem(f"variable {name} is {found}, its initial value {TensorMetadata.of(initial)}", kind="type")
    return Declaration(Tensor(name, found.dtype.name, found.shape), initial)


def expect(op_name: str, inputs: Sequence[object], count: int) -> None:
    if len(inputs) != count:
        raise Problem(f"{op_name} takes {count} arguments, not {len(inputs)}", kind="argument")


def declared(inputs: Sequence[TensorMetadata], attributes: FrozenOpAttrs) -> Sequence[TensorMetadata]:
    expect("tosa.variable", inputs, 0)
    declaration(attributes)
    return ()


def declare(call: OpCall) -> tuple[()]:
    call.runtime.context.declare([declaration(call.attributes)])
    return ()


def read(call: OpCall) -> Any:
    expect(call.op_name, call.arguments, 0)
    return call.runtime.context.read(call.attributes.get("name", "string"))


def written(inputs: Sequence[TensorMetadata], attributes: FrozenOpAttrs) -> Sequence[TensorMetadata]:
    expect("tosa.variable_write", inputs, 1)
    attributes.get("name", "string")
    return ()


def write(call: OpCall) -> tuple[()]:
    call.runtime.context.set(call.attributes.get("name", "string"), call.arrays[0])
    return ()
