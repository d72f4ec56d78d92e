"""A model called with traced tensors, inside a function that is being traced: its graph is inlined into that function, so that
operations before and after the call are compiled and fused with it."""
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
    """The attributes of a stage's graph (`stage_data.TracedData`) that this module needs."""
    @property
    def module(self) -> Module: ...
    @property
    def name(self) -> str: ...
    @property
    def results(self) -> Structure | None: ...


def inlined(model: ModelGraph, context: Context, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the results of a call of the model, as tensors of the function that is being traced. Inputs are tensors or arrays,
    which become constants; they are passed in order, by name, or as one mapping by name. The model's variables stay those of
    the context, unless the function has a context of its own."""
    module = strip_quantized(inline_branches(model.module))
    function = module.function(model.name)
    names = [v.name for v in function.arguments]
    given = by_name(model.name, names, inputs, named)
    scope = current()
    values = {argument: argument_of(given[argument.name], argument, model.name, scope) for argument in function.arguments}
    symbols = declare_variables(module, model, context, scope)
    scope.trace.models += 1
    results = append(function.body, Copies(values, f"{model.name}{scope.trace.models}.", symbols), scope)
    tensors = [Tensor(value, scope) for value in results]
    if model.results is not None:
        return rebuild(model.results)(tensors)
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def by_name(model: str, names: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return all inputs of a call by name. Raise a Problem at the user's line if an input is missing or there are too many."""
    try:
        return with_named(printable(model), names, inputs, named)
    except Problem as found:
        raise found.at(caller()) from None


def argument_of(given: Any, argument: Value, model: str, scope: Scope) -> Value:
    """Return the value to pass for an argument. Raise a Problem unless it has the argument's type."""
    found = tensor(given, argument.type.element if isinstance(argument.type, TensorType) else None)
    if found.type != argument.type:
        is_shape = isinstance(argument.type, TensorType) and found.element == argument.type.element
        raise problem(f"input {printable(argument.name)} of {printable(model)} must be {argument.type}, got {found.type}",
                      "shape" if is_shape else "type", help="reshape brings it there" if is_shape else "astype brings it there")
    return usable(found, scope, caller())


def declare_variables(module: Module, model: ModelGraph, context: Context, scope: Scope) -> Mapping[str, str]:
    """Declare the variables that the model uses in the function that is being traced, and return their symbols there."""
    used = {symbol_of(o) for o in module.function(model.name).body.walk()}
    symbols: dict[str, str] = {}
    for declaration in module.declarations:
        name = symbol_of(declaration)
        if name is None or name not in used:
            continue
        op: Any = declaration.op
        symbols[name] = symbol = scope.trace.symbol(name, context)
        known: Any = scope.trace.declarations.setdefault(symbol, with_symbol(declaration, symbol))
        if known.op.type != op.type:
            raise problem(f"variable {printable(name)} of {printable(model.name)} is {op.type}, another one of this name is "
                          f"{known.op.type}", "variable", help="rename one of them")
    return symbols


def symbol_of(operation: Operation) -> str | None:
    """Return the variable that an operation declares, reads or writes."""
    return getattr(operation.op, "symbol", None)


def with_symbol(operation: Operation, symbol: str) -> Operation:
    """Return the operation on the variable of that symbol."""
    op: Any = operation.op
    return operation if op.symbol == symbol else replace(operation, op=replace(op, symbol=symbol))


def append(body: Block, copies: Copies, scope: Scope) -> list[Value]:
    """Record copies of a block's operations, with unique result names, and return the values that the block yields."""
    for operation in body.operations:
        scope.builder.operations.append(copies.operation(operation))
    return [copies.values[v] for v in body.yields]


class Copies:
    """Copies of operations with operands replaced by `values` and variable symbols replaced by `symbols`."""

    def __init__(self, values: Mapping[Value, Value], prefix: str, symbols: Mapping[str, str]) -> None:
        self.values, self.prefix, self.symbols = dict(values), prefix, symbols

    def value(self, value: Value) -> Value:
        self.values[value] = replace(value, name=self.prefix + value.name)
        return self.values[value]

    def operation(self, operation: Operation) -> Operation:
        operands = tuple(self.values[v] for v in operation.operands)
        regions = tuple(self.block(r) for r in operation.regions)
        if (symbol := symbol_of(operation)) is not None and symbol in self.symbols:
            operation = with_symbol(operation, self.symbols[symbol])
        return replace(operation, operands=operands, regions=regions, results=tuple(map(self.value, operation.results)))

    def block(self, block: Block) -> Block:
        arguments = tuple(map(self.value, block.arguments))
        operations = tuple(map(self.operation, block.operations))
        return replace(block, arguments=arguments, operations=operations, yields=tuple(self.values[v] for v in block.yields))
