"""Graph -> graph: the consistent substitution of values and operators. Passes that only change types and names share it."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...runtime.records import dataclass
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import Op
from ..graph.types import Type


@dataclass(frozen=True, slots=True)
class ValueSubstitution:
    """A substitution. `value` returns the replacement of an argument or a result, `op` that of an operation's operator, given
    its new operands; each may return its argument unchanged."""
    value: Callable[[Value], Value]
    op: Callable[[Op, tuple[Value, ...]], Op] = lambda op, operands: op
    type: Callable[[Type], Type] = lambda type: type
    """A function that returns the replacement of a declared result type of a function."""

    def module(self, module: Module) -> Module:
        declarations = tuple(self.operation(o, {}) for o in module.declarations)
        return replace(module, functions=tuple(map(self.function, module.functions)), declarations=declarations)

    def function(self, function: Function) -> Function:
        return replace(function, body=self.block(function.body, {}), result_types=tuple(map(self.type, function.result_types)))

    def block(self, block: Block, outer: Mapping[Value, Value]) -> Block:
        values = dict(outer)
        arguments = tuple(self.defined(v, values) for v in block.arguments)
        operations = tuple(self.operation(o, values) for o in block.operations)
        return replace(block, arguments=arguments, operations=operations, yields=tuple(values.get(v, v) for v in block.yields))

    def operation(self, operation: Operation, values: dict[Value, Value]) -> Operation:
        operands = tuple(values.get(v, v) for v in operation.operands)
        regions = tuple(self.block(r, values) for r in operation.regions)
        results = tuple(self.defined(v, values) for v in operation.results)
        return replace(operation, op=self.op(operation.op, operands), operands=operands, regions=regions, results=results)

    def defined(self, value: Value, values: dict[Value, Value]) -> Value:
        """Return the replacement of a value at its definition, and record it in `values`."""
        found = self.value(value)
        if found is not value:
            values[value] = found
        return found
