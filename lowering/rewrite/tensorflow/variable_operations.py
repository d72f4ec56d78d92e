"""Operations on handles of variables."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...dialects.data import Datum, VariableHandle, described
from ...dialects.tf.legalizations import LEGALIZATIONS
from ...graph.foreign import find, spelling
from ...graph.graph import Operation, Value
from ...graph.types import TensorType
from .special import Scope, special
from .variables import read, variable_of, write

if TYPE_CHECKING:
    from .translate import Translation


@special("tf.VarHandleOp", results=1)
def handle(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    name = str(find(operation, "shared_name") or operation.results[0].name)
    name = t.bindings.symbols.get(name, name)
    t.variables.note(name, operation.results[0].type)
    return [VariableHandle(name)]


@special("tf.ReadVariableOp", operands=1, results=1)
def read_variable(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    name = variable_of(operands[0])
    t.variables.note(name, operation.operands[0].type)
    result = operation.results[0].type
    if isinstance(result, TensorType) and result.is_static:
        t.variables.types.setdefault(name, result)
    return [read(t, name)]


@special("tf.AssignVariableOp", operands=2)
def assign(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    t.variables.note(variable_of(operands[0]), operation.operands[0].type)
    write(t, variable_of(operands[0]), operands[1])
    return []


@special("tf.AssignAddVariableOp", "tf.AssignSubVariableOp", operands=2)
def update(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    name, value = variable_of(operands[0]), operands[1]
    t.variables.note(name, operation.operands[0].type)
    if not isinstance(value, Value):
        raise Problem(f"variable {name} cannot be changed by {described(value)}", kind="variable")
    t.variables.types.setdefault(name, value.tensor)
    name_of_operator = "add" if spelling(operation) == "tf.AssignAddVariableOp" else "sub"
    write(t, name, t.emitter.arithmetic(name_of_operator, read(t, name), value))
    return []


@special("tf.ResourceGather", operands=2)
def gather(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    name = variable_of(operands[0])
    t.variables.note(name, operation.operands[0].type)
    return [LEGALIZATIONS["tf.Gather"](t.emitter, operation, read(t, name), operands[1])]


@special("tf.Cast", operands=1)
def cast(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    """Return a cast value; for a handle, the same variable with another type."""
    if isinstance(operands[0], VariableHandle):
        t.variables.note(operands[0].name, operation.operands[0].type)
        return [operands[0]]
    return [LEGALIZATIONS["tf.Cast"](t.emitter, operation, operands[0])]
