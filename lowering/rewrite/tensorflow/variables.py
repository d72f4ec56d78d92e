"""Variables of TensorFlow as variables of TOSA: handles are symbols that are known at compile time.

A handle is an argument of the function, the result of `tf.VarHandleOp`, or bound to a global tensor of a SavedModel. The type
of a variable is that of the global tensor, of the caller's value, or of its handle.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ....runtime.errors import Problem
from ...dialects.data import Datum, VariableHandle, described
from ...dialects.tf.saved_model import GlobalTensor, global_tensors
from ...dialects.tf.types import variable_type
from ...dialects.tosa.variable import Variable, VariableRead, VariableWrite
from ...graph.graph import Module, Operation, Value
from ...graph.types import Array, TensorType, Type, tensor_type

if TYPE_CHECKING:
    from .translate import Translation


class Variables:
    """The variables that a function uses, in order of first use."""

    def __init__(self, module: Module, initial: Mapping[str, Array], types: Mapping[str, TensorType],
                 constants: Mapping[str, Array]) -> None:
        self.globals: dict[str, GlobalTensor] = global_tensors(module)
        self.initial, self.constants = dict(initial), dict(constants)
        self.types: dict[str, TensorType] = dict(types)
        self.types |= {name: tensor_type(array) for name, array in (*self.initial.items(), *self.constants.items())
                       if name not in self.types}
        self.types |= {name: found.type for name, found in self.globals.items() if found.type.is_static}
        self.used: dict[str, None] = {}

    def note(self, name: str, handle: Type) -> None:
        """Record the type of a variable from the type of its handle."""
        found = variable_type(handle)
        if found is not None and found.is_static:
            self.types.setdefault(name, found)

    def type(self, name: str) -> TensorType:
        found = self.types.get(name)
        if found is None:
            raise Problem(f"nothing says what type variable {name} has", kind="variable",
                          help="give its first value when the model is loaded")
        return found

    def use(self, name: str) -> TensorType:
        self.used[name] = None
        return self.type(name)

    def constant(self, name: str) -> Array | None:
        """Return the value of a variable that nothing changes."""
        if name in self.constants:
            return self.constants[name]
        found = self.globals.get(name)
        return found.value if found is not None and not found.is_mutable else None

    def declarations(self) -> tuple[Operation, ...]:
        return tuple(self.declaration(name) for name in self.used)

    def declaration(self, name: str) -> Operation:
        found = self.globals.get(name)
        first = self.initial.get(name, None if found is None else found.value)
        if first is not None:
            first = np.array(first, self.type(name).element.dtype, order="C")
            first.setflags(write=False)
        return Operation(Variable(symbol=name, type=self.type(name), initial=first), (), (),
                         position=None if found is None else found.position)


def variable_of(datum: Datum) -> str:
    if not isinstance(datum, VariableHandle):
        raise Problem(f"a handle of a variable is needed, this is {described(datum)}", kind="type")
    return datum.name


def read(t: Translation, name: str) -> Value:
    fixed = t.variables.constant(name)
    if fixed is not None:
        return t.emitter.constant(fixed, t.variables.type(name).element)
    return t.emitter.add(VariableRead(symbol=name, type=t.variables.use(name)))[0]


def write(t: Translation, name: str, value: Datum) -> None:
    if not isinstance(value, Value):
        raise Problem(f"variable {name} cannot hold {described(value)}", kind="variable")
    type = t.variables.types.setdefault(name, value.tensor)
    t.variables.use(name)
    if type != value.type:
        raise Problem(f"variable {name} is {type}, what is written to it is {value.type}", kind="variable")
    if t.variables.constant(name) is not None:
        raise Problem(f"{name} is a constant of the model, and cannot be written", kind="variable")
    t.emitter.add(VariableWrite(symbol=name), value)
