"""A model called with traced tensors, inside a function that is being traced: its graph becomes a part of that function's, so
that what is done before and after it is compiled with it, and fused."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ...lowering.graph.graph import Block, Module, Operation, Value
from ...lowering.graph.types import TensorType
from ...lowering.rewrite.branches import inline_branches
from ...lowering.rewrite.strip_quantized import strip_quantized
from ...runtime.errors import Problem, printable
from ...runtime.public_names import with_named
from ...runtime.variables import Context
from .conversion import tensor
from .pytree import Structure, rebuild
from .tensor import Tensor
from .trace import Scope, caller, current, problem, usable


class ModelGraph(Protocol):
    """A graph as stages have it (`stage_data.TracedData`), as far as it is needed here."""
    @property
    def module(self) -> Module: ...
    @property
    def name(self) -> str: ...
    @property
    def results(self) -> Structure | None: ...
    @property
    def context(self) -> Context | None: ...


def inlined(model: ModelGraph, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a call of the model gives, as tensors of the function that is being traced. Inputs are tensors, or arrays, which are
    constants then; in order, by name, or as one mapping by name. Its variables are that function's, by their names."""
    module = strip_quantized(inline_branches(model.module))
    function = module.function(model.name)
    names = [v.name for v in function.arguments]
    given = by_name(model.name, names, inputs, named)
    scope = current()
    values = {argument: argument_of(given[argument.name], argument, model.name, scope) for argument in function.arguments}
    declare_variables(module, model, scope)
    scope.trace.models += 1
    results = append(function.body, values, scope, f"{model.name}{scope.trace.models}.")
    tensors = [Tensor(value, scope) for value in results]
    if model.results is not None:
        return rebuild(model.results)(tensors)
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def by_name(model: str, names: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """All inputs of a call by name; a Problem at the user's line where one is missing, or too many are given."""
    try:
        return with_named(printable(model), names, inputs, named)
    except Problem as found:
        raise found.at(caller()) from None


def argument_of(given: Any, argument: Value, model: str, scope: Scope) -> Value:
    """What is passed for an argument: of its type."""
    found = tensor(given, argument.type.element if isinstance(argument.type, TensorType) else None)
    if found.type != argument.type:
        is_shape = isinstance(argument.type, TensorType) and found.element == argument.type.element
        raise problem(f"input {printable(argument.name)} of {printable(model)} must be {argument.type}, got {found.type}",
                      "shape" if is_shape else "type", help="reshape brings it there" if is_shape else "astype brings it there")
    return usable(found, scope, caller())


def declare_variables(module: Module, model: ModelGraph, scope: Scope) -> None:
    """The variables that the model uses, as ones of the function that is being traced."""
    used = {getattr(o.op, "symbol", None) for o in module.function(model.name).body.walk()}
    declarations: dict[str, Any] = {d.op.symbol: d for d in module.declarations}  # type: ignore[attr-defined]
    if used & declarations.keys() and model.context is not None:
        raise problem(f"the variables of {printable(model.name)} belong to a context of its own", "variable",
                      help="load the model without a context, and give it to the jitted function: tosaic.jit(context=...)")
    for symbol in declarations.keys() & used:
        known: Any = scope.trace.declarations.setdefault(symbol, declarations[symbol])
        if known.op.type != declarations[symbol].op.type:
            raise problem(f"variable {printable(symbol)} of {printable(model.name)} is {declarations[symbol].op.type}, another "
                          f"one of this name is {known.op.type}", "variable", help="rename one of them")


def append(body: Block, values: Mapping[Value, Value], scope: Scope, prefix: str) -> list[Value]:
    """Record copies of a block's operations, whose results have names of their own; what the block yields."""
    copies = Copies(values, prefix)
    for operation in body.operations:
        scope.builder.operations.append(copies.operation(operation))
    return [copies.values[v] for v in body.yields]


class Copies:
    """Copies of operations that read other values: `values` says which."""

    def __init__(self, values: Mapping[Value, Value], prefix: str) -> None:
        self.values, self.prefix = dict(values), prefix

    def value(self, value: Value) -> Value:
        self.values[value] = replace(value, name=self.prefix + value.name)
        return self.values[value]

    def operation(self, operation: Operation) -> Operation:
        operands = tuple(self.values[v] for v in operation.operands)
        regions = tuple(self.block(r) for r in operation.regions)
        return replace(operation, operands=operands, regions=regions, results=tuple(map(self.value, operation.results)))

    def block(self, block: Block) -> Block:
        arguments = tuple(map(self.value, block.arguments))
        operations = tuple(map(self.operation, block.operations))
        return replace(block, arguments=arguments, operations=operations, yields=tuple(self.values[v] for v in block.yields))
