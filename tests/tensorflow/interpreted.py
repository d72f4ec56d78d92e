"""Runs a case of the corpus in the interpreters of TensorFlow's dialects, call after call."""
from __future__ import annotations

import pytest
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.dialects.tf.values import NamedVariable
from tosaic.runtime.errors import Problem

from .corpus import Case, Variable, same


def run_interpreted(case: Case) -> int:
    """Hold every result, and every variable after every call, against TensorFlow's; how many there were."""
    environment, bindings, count = Environment(case.module), case.bindings(), 0
    for key, value in case.initial.items():
        environment.variables[bindings.get(key, key)] = value
    for k, call in enumerate(case.calls()):
        arguments = [NamedVariable(a.name) if isinstance(a, Variable) else a for a in call.arguments]
        if call.results is None:
            with pytest.raises(Problem, match="dead"):
                interpret(environment, call.function, arguments)
            continue
        found = interpret(environment, call.function, arguments)
        assert len(found) == len(call.results)
        for i, (result, expected) in enumerate(zip(found, call.results)):
            same(result, expected, f"call {k}, result {i}")
            count += 1
        for key, expected in call.variables.items():
            same(environment.variables[bindings.get(key, key)], expected, f"variable {key} after call {k}")
            count += 1
    return count
