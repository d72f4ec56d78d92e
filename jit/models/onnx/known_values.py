"""Inputs of ONNX models whose values are known at compile time: those that a caller gives once (`from_onnx(values=)`), and
those on which a call's code depends. The number of elements of a `Range`, or the axes of a reduction, may be inputs of a file:
code for it is compiled for each value, as it is for each shape. The same applies if an input or an output has no elements.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....runtime.argument_copies import in_native_order
from ....runtime.errors import Problem
from ....runtime.public_names import with_named
from ..dynamic_shapes import KEPT

if TYPE_CHECKING:
    from ....lowering.graph.graph import Function, Module, Value
    from ....lowering.graph.types import Array, TensorType

MOST_ELEMENTS = 64
"""Maximum number of integers or booleans of an input on whose value a call's code may depend: lists of axes and extents are
shorter, data is longer."""
MOST_FLOATS = 16
"""Maximum number of floats of such an input: the limit of a range, the scales of an image, and the region of interest in it."""
Places = Mapping[int, "TensorType"]
"""Types of the outputs without elements, by output number."""
EntryOf = Callable[["Module", str], Callable[..., Any]]
"""Makes the callable for the function of a name in a graph, which takes arrays in order."""


def with_values(module: Module, name: str, values: Mapping[str, Array]) -> Module:
    """Return the module whose function `name` has these inputs as constants."""
    from ....lowering.dialects.onnx.node import CONSTANT, OnnxOp
    from ....lowering.graph.graph import Operation
    from ....lowering.graph.types import TensorType
    from ....lowering.rewrite.substitute import ValueSubstitution
    from ....lowering.text.attributes import Dense
    function = module.function(name)
    given = {v: checked(v, values[v.name]) for v in function.arguments if v.name in values}

    def known(value: Value) -> Value:
        if value not in given:
            return value
        return replace(value, type=TensorType(given[value].shape, value.tensor.element), constant=given[value])
    found = ValueSubstitution(known).function(function)
    constants = [v for v in found.body.arguments if v.constant is not None]
    free = [n for n, v in enumerate(found.body.arguments) if v.constant is None]
    operations = [Operation(OnnxOp(spelling=CONSTANT, properties={"value": Dense(v.constant, v.tensor)}), (), (v,))
                  for v in constants if v.constant is not None]
    body = replace(found.body, arguments=tuple(found.body.arguments[n] for n in free),
                   operations=(*operations, *found.body.operations))
    names = tuple(found.argument_attributes[n] for n in free) if found.argument_attributes else ()
    bound = replace(found, body=body, argument_attributes=names)
    return replace(module, functions=tuple(bound if f is function else f for f in module.functions))


def checked(value: Value, given: Any) -> Array:
    """Return the value as an array that the input can have; raise a Problem if it cannot."""
    declared = value.type
    element = getattr(declared, "element", None)
    if element is None:
        raise Problem(f"input {value.name} is {declared}, which has no value here", kind="argument")
    array = in_native_order(np.array(given, None if isinstance(given, np.ndarray | np.generic) else element.dtype, order="C"))
    shape = getattr(declared, "shape", None)
    if array.dtype != element.dtype or (shape is not None and (
            len(shape) != array.ndim or any(n not in (None, m) for n, m in zip(shape, array.shape)))):
        raise Problem(f"input {value.name} is {declared}, its value is {array.dtype}{list(array.shape)}", kind="argument")
    array.setflags(write=False)
    return array


def is_parameter(array: Array) -> bool:
    """True if code may be compiled for each value of such an input."""
    return array.size <= (MOST_ELEMENTS if array.dtype.kind in "biu" else MOST_FLOATS)


class GivenValues:
    """Calls of a function without the inputs whose values are fixed, given the call that takes all inputs."""

    def __init__(self, function: Function, values: Mapping[str, Any], call: Any) -> None:
        self.values = {v.name: checked(v, values[v.name]) for v in function.arguments if v.name in values}
        self.names, self.call = [v.name for v in function.arguments], call

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        given = iter(arrays)
        found: Sequence[Array] = self.call([self.values[n] if n in self.values else next(given) for n in self.names])
        return found

    @property
    def variables(self) -> Mapping[str, Array | None]:
        return {}


class CallsByValue:
    """Calls of an entry that cannot be compiled for shapes alone."""

    def __init__(self, module: Module, name: str, entry_of: EntryOf) -> None:
        self.module, self.name, self.entry_of = module, name, entry_of
        self.wanted: frozenset[str] = frozenset()
        """Inputs on whose values code has depended so far."""
        self.kept: dict[Hashable, Prepared] = {}
        self.lock = threading.Lock()

    def __call__(self, inputs: tuple[Any, ...], named: Mapping[str, Any], **options: Any) -> Any:
        """Return the outputs for arrays in order, by name, or in one mapping; `options` are those of a call."""
        function = self.module.function(self.name)
        given = with_named(self.name, [v.name for v in function.arguments], inputs, named)
        arrays = {v.name: checked(v, given[v.name]) for v in function.arguments}
        with self.lock:
            prepared = self.prepared(function, arrays)
        return prepared(arrays, options)

    def prepared(self, function: Function, arrays: Mapping[str, Array]) -> Prepared:
        """Return the code for these arrays, by their shapes and by the values on which it depends."""
        while True:
            key = tuple((n, a.shape, a.tobytes() if n in self.wanted else None) for n, a in arrays.items())
            if key in self.kept:
                return self.kept[key]
            try:
                found = prepared(self.module, self.name, arrays, self.wanted, self.entry_of)
            except Problem as problem:
                more = {n for n in problem.inputs - self.wanted if is_parameter(arrays[n])}
                if not more:
                    raise
                self.wanted |= more
                continue
            if len(self.kept) >= KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[key] = found
            return found


class Prepared:
    """Code for one set of shapes and values, and the outputs without elements, which need no code."""

    def __init__(self, names: Sequence[str], entry: Callable[..., Any] | None, places: Places, count: int) -> None:
        self.names, self.entry, self.places, self.count = names, entry, places, count

    def __call__(self, arrays: Mapping[str, Array], options: Mapping[str, Any]) -> Any:
        computed: Any = ()
        if self.entry is not None:
            found = self.entry(*(arrays[name] for name in self.names), **options)
            computed = found if isinstance(found, tuple) else (found,)
        rest = iter(computed)
        results = tuple(np.zeros(self.places[n].dims, self.places[n].element.dtype) if n in self.places else next(rest)
                        for n in range(self.count))
        return results[0] if len(results) == 1 else results


def prepared(module: Module, name: str, arrays: Mapping[str, Array], wanted: frozenset[str], entry_of: EntryOf) -> Prepared:
    """Return the code for arrays of these shapes; the inputs in `wanted` have these values."""
    from ....lowering.dialects.onnx.node import WITHOUT_ELEMENTS
    from ....lowering.rewrite.onnx.translate import to_tosa
    from .named_extents import input_types
    bound = with_values(module, name, {n: a for n, a in arrays.items() if n in wanted})
    function = bound.function(name)
    free = [v.name for v in function.arguments]
    made = to_tosa(bound, name, input_types(function, {n: arrays[n].shape for n in free}, {}), module)
    places: Places = dict(made.attributes.get(WITHOUT_ELEMENTS, ()))
    graph = replace(made, attributes={k: v for k, v in made.attributes.items() if k != WITHOUT_ELEMENTS})
    count = len(function.body.yields)
    return Prepared(free, None if len(places) == count else entry_of(graph, name), places, count)
