"""The ways in which a graph with a variable runs: in the executor's interpreter, and as branches and loops of TOSA."""
from __future__ import annotations

import itertools

import numpy as np
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.dialects.tf.values import NamedVariable
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa
from tosaic.runtime.interpreter import InterpreterVariables
from tosaic.runtime.interpreter import interpret as interpret_tosa

INPUTS = list(itertools.product((0, 3), (-2, 1), (False, True), (False, True)))
FIRST = np.int32(5)
"""Of the variable."""


def arrays(inputs: tuple[int, int, bool, bool]) -> list[Array]:
    x, y, p, q = inputs
    return [np.array(x, np.int32), np.array(y, np.int32), np.array(p), np.array(q)]


def in_executor(module: Module, inputs: tuple[int, int, bool, bool]) -> list[int]:
    """Results of the executor's interpreter, and the variable afterwards."""
    environment = Environment(module)
    environment.variables["v"] = np.array(FIRST)
    found = interpret(environment, "main", [*arrays(inputs), NamedVariable("v")])
    value = environment.variables["v"]
    assert value is not None
    return [*map(int, found), int(value)]


def translated(module: Module) -> Module:
    tosa = to_tosa(module, "main", None, Bindings({}, {"v": np.array(FIRST)}))
    verify(tosa)
    return tosa


def in_tosa(tosa: Module, inputs: tuple[int, int, bool, bool]) -> list[int]:
    variables = InterpreterVariables()
    found = interpret_tosa(tosa, tosa.function("main"), arrays(inputs), variables=variables)
    return [*map(int, found), int(variables.snapshot().get("v", FIRST))]
