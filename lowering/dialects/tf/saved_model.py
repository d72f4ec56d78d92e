"""The variables of a SavedModel: global tensors of the module, and the arguments that are bound to them.

`"tf_saved_model.global_tensor"() <{sym_name = "v", type, value, is_mutable}>` declares one; an argument with the attribute
`tf_saved_model.bound_input = @v` is its handle, one with `tf_saved_model.index_path` an input of the caller's.
"""
from __future__ import annotations

from ....runtime.errors import Position, Problem
from ....runtime.records import dataclass
from ...graph.foreign import find, flag, required, spelling, string
from ...graph.graph import Function, Module, Operation
from ...graph.types import Array, TensorType

GLOBAL_TENSOR, BOUND, EXPORTED = "tf_saved_model.global_tensor", "tf_saved_model.bound_input", "tf_saved_model.exported_names"
INITIALIZER = "tf_saved_model.initializer_type"
"""Attribute of a function that restores variables from a file."""


@dataclass(frozen=True, slots=True)
class GlobalTensor:
    """A variable, or a constant if `is_mutable` is false, with its initial value (None: the module has none)."""
    name: str
    type: TensorType
    value: Array | None
    is_mutable: bool
    position: Position | None = None


def global_tensors(module: Module) -> dict[str, GlobalTensor]:
    """Return the global tensors of a module by their symbols."""
    found = [global_tensor(o) for o in module.declarations if spelling(o) == GLOBAL_TENSOR]
    return {g.name: g for g in found}


def global_tensor(operation: Operation) -> GlobalTensor:
    type = required(operation, "type")
    if not isinstance(type, TensorType):
        raise Problem(f"{GLOBAL_TENSOR} is of the type {type}, which is no tensor of numbers", operation.position,
                      kind="variable")
    value: Array | None = getattr(find(operation, "value"), "array", None)
    return GlobalTensor(string(operation, "sym_name"), type, value, flag(operation, "is_mutable"), operation.position)


def bound_inputs(function: Function) -> dict[int, str]:
    """Return the symbol of each bound argument, by the argument's number."""
    symbols = ((number, attributes.get(BOUND)) for number, attributes in enumerate(function.argument_attributes))
    return {number: symbol.path[-1] for number, symbol in symbols if symbol is not None}


def exported_names(function: Function) -> tuple[str, ...]:
    """Return the names under which the SavedModel exports the function."""
    names = function.attributes.get(EXPORTED, ())
    return tuple(n for n in names if isinstance(n, str))


def is_initializer(function: Function) -> bool:
    """True if a function only restores variables."""
    return INITIALIZER in function.attributes
