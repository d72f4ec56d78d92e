"""State that a streaming model takes and returns, as variables: an input and the output that becomes it in the next call are
one variable with the input's name, which persists from call to call. Attributes of the module's function record this, so that
everything that runs the function knows it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....runtime.errors import KeyProblem, Problem

if TYPE_CHECKING:
    from ....lowering.graph.graph import Function, Module
    from ....lowering.graph.types import Array

OUTPUTS, INITIAL = "onnx.state", "onnx.initial"
"""Attributes of the function: outputs by the inputs that they become, and values of these inputs before the first call."""


def with_state(module: Module, state: Mapping[str, Any]) -> Module:
    """Return the module with these inputs and outputs as variables; a value beside an output's name is the initial value, which
    is zeros otherwise."""
    from ....lowering.graph.types import TensorType, tensor_type
    from ....lowering.text.attributes import Dense
    function = module.function("main")
    inputs, outputs = {v.name: v for v in function.arguments}, output_names(function)
    pairs: dict[str, str] = {}
    first: dict[str, Dense] = {}
    for name, given in state.items():
        output, value = given if isinstance(given, tuple) else (given, None)
        for wanted, known, what in ((name, list(inputs), "input"), (output, outputs, "output")):
            if wanted not in known:
                raise KeyProblem(f"the model has no {what} named {wanted}", kind="argument",
                                 help=f"its {what}s: {', '.join(known)}")
        if output in pairs.values():
            raise Problem(f"the output {output} becomes two inputs", kind="argument")
        pairs[name] = output
        if value is not None:
            array = np.array(value, order="C")
            array.setflags(write=False)
            type = inputs[name].type
            if not isinstance(type, TensorType) or array.dtype != type.element.dtype:
                raise Problem(f"the input {name} is {type}, its first value is of {array.dtype}", kind="argument")
            first[name] = Dense(array, tensor_type(array))
    attributes = {**function.attributes, OUTPUTS: pairs, **({INITIAL: first} if first else {})}
    return replace(module, functions=(replace(function, attributes=attributes),))


def output_names(function: Function) -> list[str]:
    """Return the file's names of the outputs."""
    attributes = function.result_attributes or ({},) * len(function.body.yields)
    return [str(own.get("onnx.name", value.name)) for own, value in zip(attributes, function.body.yields)]


def state_of(function: Function) -> Mapping[str, str]:
    """Return the outputs by the inputs that they become."""
    found: Mapping[str, str] = function.attributes.get(OUTPUTS, {})
    return found


def first_value(function: Function, name: str, shape: Sequence[int]) -> Array:
    """Return the value of a variable before the first call."""
    given = function.attributes.get(INITIAL, {}).get(name)
    value = next(v for v in function.arguments if v.name == name)
    found = np.zeros(tuple(shape), value.tensor.element.dtype) if given is None else np.array(given.array)
    if found.shape != tuple(shape):
        raise Problem(f"the input {name} has the shape {list(shape)}, its first value {list(found.shape)}", kind="argument")
    found.setflags(write=False)
    return found


def bound(module: Module, original: Function) -> Module:
    """Return the TOSA graph with the carried state as variables."""
    from ....lowering.rewrite.function_interface import PersistentTensor, bind_state
    pairs = state_of(original)
    if not pairs:
        return module
    function, names = module.functions[0], output_names(original)
    inputs = {v.name: v for v in function.arguments}
    first = [inputs[name] for name in pairs]
    rest = [v for v in function.arguments if v.name not in pairs]
    places = [names.index(output) for output in pairs.values()]
    others = [n for n in range(len(names)) if n not in places]
    yields = tuple(function.body.yields[n] for n in (*places, *others))
    attributes = tuple(function.result_attributes[n] for n in (*places, *others)) if function.result_attributes else ()
    body = replace(function.body, arguments=(*first, *rest), yields=yields)
    ordered = replace(function, body=body, result_types=tuple(v.type for v in yields), result_attributes=attributes)
    for value, place in zip(first, places):
        if function.body.yields[place].type != value.type:
            raise Problem(f"the output {names[place]} is {function.body.yields[place].type}, the input {value.name}, which it "
                          f"becomes, {value.type}", kind="argument")
    state = [PersistentTensor(v.name, first_value(original, v.name, v.tensor.dims)) for v in first]
    return bind_state(replace(module, functions=(ordered,)), ordered, state)


class CarriedCalls:
    """Calls, without the state, of a function that takes and returns all its state: the state is kept here."""

    def __init__(self, function: Function, call: Any) -> None:
        self.function, self.call = function, call
        self.held: dict[str, Array] = {}

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        pairs, names, given = state_of(self.function), output_names(self.function), iter(arrays)
        inputs = [self.state(v.name, arrays) if v.name in pairs else next(given) for v in self.function.arguments]
        results = list(self.call(inputs))
        self.held.update({name: results[names.index(output)] for name, output in pairs.items()})
        return [r for name, r in zip(names, results) if name not in pairs.values()]

    def state(self, name: str, arrays: Sequence[Array]) -> Array:
        """Return the held state, or its initial value, whose shape follows from the inputs of the call."""
        if name not in self.held:
            from .named_extents import input_types
            free = [v.name for v in self.function.arguments if v.name not in state_of(self.function)]
            types = input_types(self.function, {n: np.shape(a) for n, a in zip(free, arrays)}, {})
            type: Any = next(t for v, t in zip(self.function.arguments, types) if v.name == name)
            self.held[name] = first_value(self.function, name, type.dims)
        return self.held[name]

    @property
    def variables(self) -> Mapping[str, Array | None]:
        return self.held
