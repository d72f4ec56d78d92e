"""The four streaming wake-word models of pymicro-wakeword: int8, with state. 1,000 steps each."""
from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced
from tosaic.jit.tools.check.crosscheck import observe_all
from tosaic.lowering.graph.graph import Function, Module
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import InterpreterVariables, interpret

from .lite import Lite
from .sources import WAKE_WORDS, convert, stream, wake_word_model

STEPS = 1000


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WAKE_WORDS[::2])  # all of them beside LiteRT below
def test_native_code_gives_the_interpreters_bytes_for_a_thousand_steps(name: str) -> None:
    entry = tosaic.load(wake_word_model(name), name=name).main
    context, variables = tosaic.Context(name), InterpreterVariables()
    step = entry.compile(context=context)
    module = entry.trace().module
    outputs = set()
    for x in stream(name, STEPS):
        (expected,) = interpret(module, module.function(), [x], variables=variables)
        actual = step(x)
        assert actual.tobytes() == expected.tobytes()
        outputs.add(int(actual[0, 0]))
    state = context.snapshot()
    assert len(state) == 6
    for symbol, expected in variables.snapshot().items():
        assert state[symbol].tobytes() == expected.tobytes(), symbol
    assert max(outputs) > 200 and len(outputs) > 10, "the spoken word was heard"


def located(module: Module, function: Function) -> dict[str, int]:
    """Which output of the observed function holds each of TFLite's tensors: the last operator with its name."""
    _, operations = observe_all(function)
    place, number = {}, len(function.body.yields)
    for operation in operations:
        if match := re.match(r'loc\("([^"]*)"', operation.location or ""):
            place[match[1]] = number
        number += len(operation.results)
    return place


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", WAKE_WORDS)
def test_native_code_gives_litert_bytes_in_every_activation_of_a_thousand_steps(name: str) -> None:
    model = wake_word_model(name)
    module = rewritten(read_module(convert(model), name))
    function = module.function()
    place = located(module, function)
    observed = dataclasses.replace(module, functions=(observe_all(function)[0],))
    context = tosaic.Context(name)
    step = Traced(observed, function.name).compile(context=context)
    lite = Lite(model)
    unnamed: dict[str, set[int]] = {}
    for number, x in enumerate(stream(name, STEPS)):
        (expected,) = lite(x)
        actual = step(x)
        assert actual[0].tobytes() == expected.tobytes(), f"output of step {number}"
        for tensor, right in lite.activations().items():
            if tensor in place:
                if actual[place[tensor]].tobytes() != right.tobytes():  # the message takes longer than the comparison
                    np.testing.assert_array_equal(actual[place[tensor]].reshape(right.shape), right,
                                                  f"{tensor}, step {number}")
            else:  # a tensor whose name the converter drops (splits): one operator must hold it in all steps
                same = {i for i, a in enumerate((*actual, x)) if a.tobytes() == right.tobytes()}
                unnamed[tensor] = unnamed.get(tensor, same) & same
    assert all(unnamed.values()), unnamed
    print(f"{name}: {len(lite.activations()) - len(unnamed)} activations by name, {len(unnamed)} by value")
