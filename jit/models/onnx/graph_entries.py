"""Modules of ONNX's dialect as models: the graph is the entry `main`, and its TOSA graph is made for inputs of known shapes."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Problem
from ...cache.models import Outline
from .carried_state import CarriedCalls, bound, output_names, state_of
from .known_values import CallsByValue, EntryOf
from .named_extents import input_types, stated_shapes

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module, Operation
    from ....lowering.graph.types import Array, Type
    from ....lowering.rewrite.tensorflow import Bindings
    from ....lowering.rewrite.translation_record import RecordedTranslation
    from ...source import ObservedRun

KIND = "a graph of ONNX"


def outlines(module: Module, bindings: Bindings | None = None) -> tuple[Outline, ...]:
    """Return the outlines of the entries, which are all that a call needs. Raise a Problem for an operator if the first call
    would."""
    from ....lowering.rewrite.onnx.check_operators import check_operators
    check_operators(module)
    return tuple(Outline(f.name, not all(is_static(v.type) for v in f.arguments),
                         tuple(v.name for v in f.arguments if v.name not in state_of(f)), stated_shapes(f))
                 for f in module.functions if not f.is_private)


def is_static(type: Type) -> bool:
    return bool(getattr(type, "is_static", False))


def graph_of(module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None = None) -> Module:
    """Return the TOSA graph of entry `name`, for inputs of these shapes; inputs that are not named have the shapes of the file.
    A named extent is given as a shape of one number."""
    from ....lowering.dialects.onnx.node import WITHOUT_ELEMENTS
    from ....lowering.graph.graph import Module
    from ....lowering.rewrite.onnx.translate import to_tosa
    function = module.function(name)
    names = {v.name for v in function.arguments}
    extents = {key: int(shape[0]) for key, shape in shapes.items() if key not in names and len(shape) == 1}
    types = input_types(function, {k: tuple(map(int, s)) for k, s in shapes.items() if k not in extents}, extents)
    if not shapes and not all(map(is_static, types)):
        free = tuple(v for v in function.arguments if v.name not in state_of(function))
        return Module((replace(function, body=replace(function.body, arguments=free, operations=())),))
    made = to_tosa(module, name, types)
    if empty := made.attributes.get(WITHOUT_ELEMENTS):
        number, type = empty[0]
        raise Problem(f"output {output_names(function)[number]} is {type}: it has no elements", kind="shape",
                      help="TOSA has no such tensors; a call gives it")
    return bound(made, function)


def calls_by_value(module: Module, name: str, entry_of: EntryOf) -> CallsByValue | None:
    """Return calls of an entry for which there is no graph for shapes alone; None for an entry that carries state."""
    return None if state_of(module.function(name)) else CallsByValue(module, name, entry_of)


def calls_of(module: Module, name: str, bindings: Bindings | None = None) -> ObservedRun:
    """Return calls of an entry in the interpreter of ONNX's dialect. A quantized model is interpreted with its integers in
    place of its floats: compiled code is compared with it node by node (`quantized_terms`), rather than at the end, where
    rounding steps have accumulated."""
    from ....lowering.rewrite.onnx.quantized_patterns import in_integers
    return InterpretedCalls(in_integers(module), name)


class InterpretedCalls:
    """Calls of an entry in the interpreter of ONNX's dialect, with the state that the entry carries."""

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.name = module, name
        self.observe: Callable[[Operation, Sequence[Any]], None] | None = None
        self.calls = CarriedCalls(module.function(name), self.interpret)

    def interpret(self, arrays: Sequence[Array]) -> Sequence[Array]:
        from ....lowering.dialects.onnx.interpret import interpret
        return interpret(self.module, self.name, arrays, self.observe)

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        return self.calls(arrays)

    def observed_by(self, came: Callable[[Operation, Sequence[Any]], None], written: object) -> None:
        self.observe = came

    @property
    def variables(self) -> Mapping[str, Array | None]:
        return self.calls.variables


def recorded(module: Module, name: str, types: Sequence[Type], bindings: Bindings | None = None) -> RecordedTranslation:
    """Return the TOSA graph of an entry with the translation of each node, and the references of ONNX's operators."""
    from ....lowering.dialects.onnx.node import label
    from ....lowering.dialects.onnx.operator import interpreted
    from ....lowering.dialects.onnx.operators import operator_of
    from ....lowering.rewrite.onnx.translate import recorded
    from ....lowering.rewrite.translation_record import RecordedTranslation
    from .quantized_terms import steps_of, terms
    found, translation = recorded(module, name, input_types(module.function(name), shapes_of(module, name, types), {}))
    records = tuple(translation.emitter.records or ())

    def reference(operation: Operation, operands: Sequence[Any]) -> Sequence[Any] | None:
        operator = operator_of(operation, module)
        return None if operation.regions or operator.is_random else interpreted(operator, operands)

    def named(operation: Operation) -> str:
        results = ", ".join(v.name for v in operation.results[:1])
        return f"{label(operation, module)}, which gives {results}"
    return RecordedTranslation(found, name, records, reference, named, steps_of, lambda o: bool(o.regions),
                               terms(module, name, translation, named))


def shapes_of(module: Module, name: str, types: Sequence[Type]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs; those of the state are not among `types`, the types of the graph's arguments."""
    from ....lowering.graph.types import TensorType
    function = module.function(name)
    free = [v.name for v in function.arguments if v.name not in state_of(function)]
    return {n: t.dims for n, t in zip(free, types) if isinstance(t, TensorType)}


def carried(module: Module, name: str, call: Callable[[Sequence[Array]], Sequence[Array]]
            ) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """Return calls of an entry without its state, given the call of its graph with the state."""
    return CarriedCalls(module.function(name), call)
