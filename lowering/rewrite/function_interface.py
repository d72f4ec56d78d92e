"""Graph -> graph: what a function's callers see is changed: its inputs get names; inputs and results become state.

Front doors that know more than their converter says use this. A function that takes old values of some tensors first and
gives their new values first becomes one that reads variables when it begins and writes them when it ends.
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
    """A tensor that outlives calls: the name of its variable, its initial value (read-only)."""
    name: str
    initial: Array


def rename_inputs(module: Module, function: Function, names: Sequence[str]) -> Module:
    """The module with the inputs of `function` named so, in order."""
    renamed = {value: replace(value, name=name) for value, name in zip(function.arguments, names, strict=True)}
    new = ValueSubstitution(lambda value: renamed.get(value, value)).function(function)
    return replace(module, functions=tuple(new if f is function else f for f in module.functions))


def bind_state(module: Module, function: Function, state: Sequence[PersistentTensor]) -> Module:
    """The module in which the first inputs and the first results of `function`, one of each for each state, are variables."""
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
    """The function with reads first, so that every operation sees the old values, and writes last."""
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
