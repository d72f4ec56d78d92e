"""A module with wrapped operators, for the interpreter: wrappers see the operands of every operation, also in regions, and may
change its results. Values stay the same objects, so that they can be used to look up results.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ....lowering.graph.graph import Block, Module, Operation
from ....lowering.graph.types import Array

Wrap = Callable[[Operation], "InstrumentedOp | None"]
"""Returns the replacement of an operation's operator, or None to keep the operator."""


@dataclass(slots=True)
class InstrumentedOp:
    """An operator with another `reference`: this object's `reference` gets the operation and the operands."""
    operation: Operation
    apply: Callable[[Operation, tuple[Array, ...]], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operation.op, name)

    def reference(self, *operands: Array) -> Any:
        return self.apply(self.operation, operands)


def instrumented(module: Module, wrap: Wrap) -> Module:
    """Return the module with the operators that `wrap` returns. Constants, variables and control flow stay unchanged."""
    def block(b: Block) -> Block:
        return replace(b, operations=tuple(map(operation, b.operations)))

    def operation(o: Operation) -> Operation:
        if o.regions:
            return replace(o, regions=tuple(map(block, o.regions)))
        is_plain = o.op.variable_effect or hasattr(o.op, "values")
        found: Any = None if is_plain else wrap(o)
        return o if found is None else replace(o, op=found)

    return replace(module, functions=tuple(replace(f, body=block(f.body)) for f in module.functions))
