"""A function of a graph -> descriptors of its inputs, outputs, variables and constants, and the quantization of its buffers."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..lowering.dialects.tosa.data import Const
from ..lowering.dialects.tosa.variable import Variable
from ..lowering.graph.quantized import Quantized, quantization_of
from ..lowering.graph.result_names import name_of_result
from ..lowering.graph.types import TensorType, Type
from ..runtime.errors import printable
from .descriptors import Interface, TensorDescriptor

if TYPE_CHECKING:
    from ..lowering.elements.expression import Buffer
    from ..lowering.graph.graph import Function, Module


def interface_of(module: Module, function: Function, compiled: Function) -> Interface:
    """Return the tensors of a function. `compiled` is the function in the form of its compiled code, which has more inputs or
    outputs if one of them is block-scaled."""
    inputs = [descriptor(printable(f"{v.name}: {v.type}"), v.name, v.type) for v in compiled.arguments]
    types = result_types(function) if len(function.result_types) == len(compiled.body.yields) else \
        [v.type for v in compiled.body.yields]
    outputs = [descriptor(str(type), name, type) for name, type in zip(result_names(function, len(types)), types)]
    return Interface(function.name, tuple(inputs), tuple(outputs), tuple(variables_of(module, function)),
                     tuple(constants_of(function)))


def result_names(function: Function, count: int) -> list[str]:
    """Return the names of the results: those in the file, or numbered names for results without a name or with one that another
    result has too."""
    attributes = function.result_attributes if len(function.result_attributes) == count else ({},) * count
    names = [name_of_result(own) for own in attributes]
    return [name if name and names.count(name) == 1 else f"result{i}" for i, name in enumerate(names)]


def descriptor(spelling: str, name: str, type: Type) -> TensorDescriptor:
    if not isinstance(type, TensorType):
        return TensorDescriptor(spelling, name, str(type), None)
    element = type.element
    stored = element.stored if isinstance(element, Quantized) else element
    return TensorDescriptor(spelling, name, element.storage, type.shape, stored.name, quantization_of(element))


def result_types(function: Function) -> list[Type]:
    """Return the types of the results: the declared type if it has a quantization, otherwise the type of the value."""
    return [declared if is_said(declared) else value.type for declared, value in
            zip(function.result_types, function.body.yields)]


def is_said(type: Type) -> bool:
    return isinstance(type, TensorType) and quantization_of(type.element) is not None


def variables_of(module: Module, function: Function) -> Iterator[TensorDescriptor]:
    """Yield the variables that a function reads or writes."""
    used = {getattr(o.op, "symbol", None) for o in function.body.walk() if o.op.variable_effect}
    for operation in module.declarations:
        if isinstance(operation.op, Variable) and operation.op.symbol in used:
            name, type = operation.op.symbol, operation.op.type
            yield descriptor(printable(f"{name}: {type}"), name, type)


def constants_of(function: Function) -> Iterator[TensorDescriptor]:
    for operation in function.body.walk():
        if isinstance(operation.op, Const):
            (value,) = operation.results
            yield descriptor(printable(f"{value.name}: {value.type}"), value.name, value.type)


def quantized_buffers(module: Module, function: Function, inputs: Sequence[Buffer], outputs: Sequence[Buffer],
                      variables: Sequence[Buffer], constants: Sequence[Buffer]) -> dict[Buffer, Quantized]:
    """Return the quantization of each buffer for which the graph gives one; of the constants, only those that are stored as in
    the graph."""
    types: list[tuple[Buffer, Type]] = []
    if len(inputs) == len(function.arguments) and len(outputs) == len(function.body.yields):  # none is block-scaled
        types += [*zip(inputs, (v.type for v in function.arguments)), *zip(outputs, result_types(function))]
    declared = {o.op.symbol: o.op.type for o in module.declarations if isinstance(o.op, Variable)}
    types += [(b, declared[b.name]) for b in variables if b.name in declared]
    known = {o.results[0].name: o.results[0].type for o in function.body.walk() if isinstance(o.op, Const)}
    types += [(b, type) for b in constants if isinstance(type := known.get(b.name), TensorType) and type.shape == b.shape
              and type.element.storage == b.dtype]
    return {buffer: type.element for buffer, type in types
            if isinstance(type, TensorType) and isinstance(type.element, Quantized)}
