"""Graph -> graph: changes of a function's interface: its inputs get names; inputs and results become state.

Front ends that know more than their converter use this. A function whose first arguments are the old values of some tensors and
whose first results are their new values becomes one that reads variables at its start and writes them at its end.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..dialects.tosa.variable import Variable, VariableRead, VariableWrite
from ..graph.graph import Function, Module, Operation, Value
from ..graph.types import Array
from .substitute import ValueSubstitution


@dataclass(frozen=True, slots=True, eq=False)
class PersistentTensor:
    """A tensor that outlives calls: the name of its variable, and its initial value (read-only)."""
    name: str
    initial: Array


def rename_inputs(module: Module, function: Function, names: Sequence[str]) -> Module:
    """Return the module with the inputs of `function` renamed to `names`, in order."""
    renamed = {value: replace(value, name=name) for value, name in zip(function.arguments, names, strict=True)}
    new = ValueSubstitution(lambda value: renamed.get(value, value)).function(function)
    return replace(module, functions=tuple(new if f is function else f for f in module.functions))


def bind_state(module: Module, function: Function, state: Sequence[PersistentTensor]) -> Module:
    """Return the module with the first inputs and the first results of `function`, one of each per state, as variables."""
    if not state:
        return module
    declarations = tuple(declaration(s, v) for s, v in zip(state, function.arguments, strict=False))
    new = stateful(function, state)
    return replace(module, functions=tuple(new if f is function else f for f in module.functions),
                   declarations=(*module.declarations, *declarations))


def declaration(state: PersistentTensor, old: Value) -> Operation:
    type = old.tensor
    if (type.shape, type.element.dtype) != (state.initial.shape, state.initial.dtype):
        raise Problem(f"{state.name} is {type}, its initial value has shape {list(state.initial.shape)} of "
                      f"{state.initial.dtype}", kind="variable")
    return Operation(Variable(symbol=state.name, type=type, initial=state.initial), (), (), position=old.position)


def stateful(function: Function, state: Sequence[PersistentTensor]) -> Function:
    """Return the function with reads first, so that every operation sees the old values, and writes last."""
    body, count = function.body, len(state)
    reads = [Operation(VariableRead(symbol=s.name, type=old.tensor), (), (old,), position=old.position)
             for s, old in zip(state, body.arguments)]
    writes = [Operation(VariableWrite(symbol=s.name), (new,), (), position=body.terminator_position)
              for s, new in zip(state, body.yields)]
    body = replace(body, arguments=body.arguments[count:], operations=(*reads, *body.operations, *writes),
                   yields=body.yields[count:])
    return replace(function, body=body, result_types=function.result_types[count:],
                   argument_attributes=function.argument_attributes[count:],
                   result_attributes=function.result_attributes[count:])
