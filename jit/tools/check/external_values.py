"""Values for variables that a function reads and another graph declares. `check` gives both engines the same values, as for
inputs; a user would run the other graph before.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lowering.graph.external import external_reads
from ....lowering.graph.graph import Function, Module
from ....runtime.arguments import Tensor
from ....runtime.interpreter_variables import InterpreterVariables, VariableState
from ....runtime.variable import Declaration
from ....runtime.variables import Context
from ..random_array import random_array

FIRST = 1 << 16
"""Generator number of the first value, after those of all inputs."""


def give_external(module: Module, function: Function, contexts: Sequence[Context], variables: InterpreterVariables) -> None:
    """Declare and write the variables that `function` reads and the module does not declare, in these contexts and for the
    interpreter."""
    for number, (symbol, read) in enumerate(external_reads(replace(module, functions=(function,))).items()):
        type = read.results[0].tensor
        value = random_array(function, read.results[0], FIRST + number, 0)
        value.setflags(write=False)
        variables.states[symbol] = VariableState(type, value, True)
        tensor = Tensor(symbol, type.element.storage, type.dims, type.element.name)
        for context in contexts:
            context.declare([Declaration(tensor, value, read.position)])
