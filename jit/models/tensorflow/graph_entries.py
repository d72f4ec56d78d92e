"""Modules of TensorFlow's dialects as models: the functions that are entries, the names of their inputs, and the TOSA graph of
an entry for inputs of known shapes.

Handles of variables are no inputs of a function. `Bindings` supply what the module omits: the variable of each handle argument,
and the initial values.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....lowering.graph.graph import Module
from ....runtime.errors import Problem
from ...cache.models import Outline

if TYPE_CHECKING:
    from ....lowering.graph.graph import Function, Operation, Value
    from ....lowering.graph.types import Array, Type
    from ....lowering.rewrite.tensorflow import Bindings
    from ....lowering.rewrite.translation_record import RecordedTranslation
    from ...source import ObservedRun

KIND = "a graph of TensorFlow"
INFERENCE = re.compile(r"__inference_(.+?)_\d+")
"""Pattern of the names that TensorFlow gives the functions that it traces."""


def is_tensorflow(module: Module) -> bool:
    """True if a module's functions are made of TensorFlow's operations."""
    from ....lowering.dialects.onnx.node import is_onnx
    from ....lowering.graph.verify import is_foreign
    return is_foreign(module) and not is_onnx(module)


def entries(module: Module) -> dict[str, Function]:
    """Return the functions that users call, by the names that they know."""
    from ....lowering.dialects.tf.saved_model import exported_names, is_initializer
    public = [f for f in module.functions if not f.is_private and not is_initializer(f)]
    wanted = [next(iter(exported_names(f)), short_name(f.name)) for f in public]
    return {w if wanted.count(w) == 1 else f.name: f for w, f in zip(wanted, public)}


def short_name(name: str) -> str:
    """Return the name without TensorFlow's decoration: `step` for `__inference_step_1769`."""
    found = INFERENCE.fullmatch(name)
    return found[1] if found and found[1].isidentifier() else name


def outlines(module: Module, bindings: Bindings | None = None) -> tuple[Outline, ...]:
    """Return the outlines of the entries, which are all that a call needs."""
    return tuple(Outline(name, any(not is_static(v) for v in inputs(f, bindings)), tuple(input_names(f, bindings)))
                 for name, f in entries(module).items())


def inputs(function: Function, bindings: Bindings | None) -> list[Value]:
    """Return the arguments that are neither handles of variables nor constants."""
    from ....lowering.rewrite.tensorflow import handle_symbols
    fixed = bindings.arguments if bindings else {}
    return [v for v, symbol in zip(function.arguments, handle_symbols(function)) if symbol is None and v.name not in fixed]


def input_names(function: Function, bindings: Bindings | None) -> list[str]:
    from ....lowering.rewrite.tensorflow import argument_names
    names = argument_names(function)
    return [names[v] for v in inputs(function, bindings)]


def is_static(value: Value) -> bool:
    from ....lowering.dialects.standard.operators import scalar_tensor
    from ....lowering.graph.types import TensorType
    type = scalar_tensor(value.type)
    return isinstance(type, TensorType) and type.is_static


def declared(module: Module, name: str, bindings: Bindings | None) -> Module:
    """Return entry `name` as declared in the module, with the types of its inputs and results and without its body."""
    function = entries(module)[name]
    arguments = tuple(replace(v, name=n) for v, n in zip(inputs(function, bindings), input_names(function, bindings)))
    return Module((replace(function, name=name, body=replace(function.body, arguments=arguments, operations=())),))


def graph_of(module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None) -> Module:
    """Return the TOSA graph of entry `name`, for inputs of these shapes; inputs that are not named have the shapes of the
    module."""
    from ....lowering.rewrite.tensorflow import to_tosa
    function = entries(module)[name]
    names = input_names(function, bindings)
    for each in shapes:
        if each not in names:
            raise Problem(f"{name} has no input named {each}", kind="argument", help=f"its inputs: {', '.join(names)}")
    types = [shaped(v, shapes.get(n)) for v, n in zip(inputs(function, bindings), names)]
    if not shapes and not all(map(is_static, inputs(function, bindings))):
        return declared(module, name, bindings)
    found = to_tosa(module, function.name, types, bindings)
    return replace(found, functions=tuple(replace(f, name=name) for f in found.functions))


def calls_of(module: Module, name: str, bindings: Bindings | None) -> ObservedRun:
    """Return calls of an entry in the interpreters of TensorFlow's dialects."""
    return InterpretedCalls(module, name, bindings)


def recorded(module: Module, name: str, types: Sequence[Type], bindings: Bindings | None) -> RecordedTranslation:
    """Return the TOSA graph of an entry with the translation of each operation, and the references of TensorFlow's
    operations."""
    from ....lowering.dialects.tf.references import REFERENCES
    from ....lowering.graph.foreign import spelling
    from ....lowering.rewrite.tensorflow.translate import recorded
    from ....lowering.rewrite.translation_record import RecordedTranslation

    def reference(operation: Operation, operands: Sequence[Any]) -> Sequence[Any] | None:
        found = REFERENCES.get(spelling(operation))
        if found is None:
            return None
        results = found(operation, *operands)
        return results if isinstance(results, tuple) else (results,)
    function = entries(module)[name]
    found, records = recorded(module, function.name, types, bindings)
    return RecordedTranslation(found, function.name, tuple(records), reference, label, steps, is_followed, {})


def label(operation: Operation) -> str:
    """Return a description of an operation: its results, its operator, and its name in the user's graph."""
    from ....lowering.graph.foreign import spelling
    from ....lowering.text.names import UNUSED
    inner = [spelling(o) for region in operation.regions for o in region.operations]
    name = spelling(operation) + (f" of {inner[0]}" if spelling(operation) == "tf_executor.island" and inner else "")
    results = ", ".join(f"%{v.name}" for v in operation.results[:1] if v.name != UNUSED)
    located = (operation.location or "").strip('"')
    return f"{name}{f' {located}' if located else ''}{f' ({results})' if results else ''}"


def is_followed(operation: Operation) -> bool:
    """True if the operation is control flow, a call, or an access to a variable."""
    from ....lowering.dialects.tf.interpret import SPECIAL
    from ....lowering.graph.foreign import spelling
    return spelling(operation) in SPECIAL or spelling(operation).startswith("tf_executor.")


def steps(operation: Operation) -> int:
    """Return the tolerance of an operation's integers, in steps: one if a product with a scale is rounded."""
    from ....lowering.graph.foreign import spelling
    return 1 if spelling(operation).startswith(("tf.Quantize", "tf.Requantize")) else 0


def carried(module: Module, name: str, call: Callable[[Sequence[Array]], Sequence[Array]]
            ) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """Return calls of an entry, which are the calls of its graph."""
    return call


class InterpretedCalls:
    """Calls of an entry in the interpreters of TensorFlow's dialects, on one state."""

    def __init__(self, module: Module, name: str, bindings: Bindings | None) -> None:
        from ....lowering.dialects.tf.interpret import Environment
        from ....lowering.rewrite.tensorflow import handle_symbols
        self.function = entries(module)[name]
        self.environment = Environment(module, rfc_merge=bindings is not None and bindings.rfc_merge)
        self.symbols = handle_symbols(self.function, bindings)
        self.fixed: Mapping[str, Array] = bindings.arguments if bindings else {}
        for values in (bindings.initial, bindings.constants) if bindings else ():
            self.environment.variables.update(values)

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        from ....lowering.dialects.tf.interpret import interpret
        from ....lowering.dialects.tf.saved_model import bound_inputs
        from ....lowering.dialects.tf.values import NamedVariable
        given, bound = iter(arrays), bound_inputs(self.function)
        arguments = [NamedVariable(symbol) if symbol else self.fixed[v.name] if v.name in self.fixed else next(given)
                     for n, (v, symbol) in enumerate(zip(self.function.arguments, self.symbols)) if n not in bound]
        return interpret(self.environment, self.function.name, arguments)

    def observed_by(self, came: Callable[[Operation, Sequence[Any]], None], written: Callable[[Operation, str, Array], None]
                    ) -> None:
        self.environment.observe, self.environment.written = came, written

    @property
    def variables(self) -> Mapping[str, Array | None]:
        return self.environment.variables


def calls_by_value(module: Module, name: str, entry_of: object) -> None:
    """Return None: values of inputs matter only if they are known, and then a trace has them as constants."""
    return None


def check_takes_bindings(module: Module, option: str) -> None:
    """Raise a Problem if an option for graphs of TensorFlow is given with another model, which would ignore it."""
    if not is_tensorflow(module):
        raise Problem(f"{option} is for graphs of TensorFlow in MLIR, and this model is none", kind="argument",
                      help=f"leave {option} out")


def bindings_of(variables: Mapping[str, Any], rfc_merge: bool = False) -> Bindings:
    """Return bindings with the names of variables by argument, initial values by name, and the treatment of a Merge with a dead
    control input."""
    import numpy as np

    from ....lowering.rewrite.tensorflow import Bindings
    symbols = {key: value for key, value in variables.items() if isinstance(value, str)}
    return Bindings(symbols, {key: np.asarray(value) for key, value in variables.items() if not isinstance(value, str)},
                    rfc_merge=rfc_merge)


def shaped(value: Value, shape: Sequence[int] | None) -> Type:
    from ....lowering.graph.types import TensorType
    if shape is None or not isinstance(value.type, TensorType):
        return value.type
    return TensorType(tuple(map(int, shape)), value.type.element)
