"""Graph -> graph: `tf.If` and `tf.StatelessIf`, which name functions, as COND_IF, which holds regions.

Arm's converter leaves these operations beside TOSA when a TFLite model has branches: this pass copies the two functions that
they name into the operation. Other operations that the converter cannot convert stay unchanged, and are refused when something
needs them.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...runtime import limits
from ...runtime.errors import Problem
from ..dialects.tosa.control_flow import CondIf
from ..graph.graph import Block, Module, Operation, Value
from ..graph.operator import UnknownOp

SPELLINGS = frozenset({"tf.If", "tf.StatelessIf"})
LARGEST_DEPTH = 64
"""Maximum depth of functions that name each other."""


def inline_branches(module: Module) -> Module:
    """The module with branches as regions; unchanged (the same object) if it has none."""
    if not any(is_branch(o) for f in module.functions for o in f.body.walk()):
        return module
    inlining = BranchInlining(module)
    return replace(module, functions=tuple(replace(f, body=inlining.inlined(f.body, 0)) for f in module.functions))


def is_branch(operation: Operation) -> bool:
    return isinstance(operation.op, UnknownOp) and operation.op.spelling in SPELLINGS


class BranchInlining:
    """Copies functions of a module into the branches that name them, within the limit on the number of operations."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.operations_left = limits.most_expanded(sum(1 for f in module.functions for _ in f.body.walk()))

    def inlined(self, block: Block, depth: int) -> Block:
        """Return the block with every branch in it as regions."""
        operations = []
        for operation in block.operations:
            self.operations_left -= 1
            if self.operations_left < 0:
                raise limits.expanded("branches", "let a function that is named twice be named once", operation.position)
            if is_branch(operation):
                operation = self.branch(operation, depth)
            elif operation.regions:
                operation = replace(operation, regions=tuple(self.inlined(r, depth) for r in operation.regions))
            operations.append(operation)
        return replace(block, operations=tuple(operations))

    def branch(self, operation: Operation, depth: int) -> Operation:
        """Return COND_IF with copies of the two functions."""
        properties: Mapping[str, Any] = {**operation.attributes, **(getattr(operation.op, "properties", None) or {})}
        if depth >= LARGEST_DEPTH:
            raise Problem(f"{operation.op.name or 'tf.If'} names functions that name each other", operation.position)
        regions = []
        for attribute in ("then_branch", "else_branch"):
            symbol = properties.get(attribute)
            if symbol is None:
                raise Problem(f"tf.If has no {attribute}", operation.position, kind="attribute")
            regions.append(copied(self.inlined(self.module.function(symbol.path[-1]).body, depth + 1), {}))
        kept = {name: value for name, value in operation.attributes.items() if "." in name}
        return replace(operation, op=CondIf(), regions=tuple(regions), attributes=kept)


def copied(block: Block, outer: Mapping[Value, Value]) -> Block:
    """Return a copy of the block with new values, so that one function may become several regions."""
    values = dict(outer)

    def fresh(value: Value) -> Value:
        values[value] = replace(value)
        return values[value]

    arguments = tuple(map(fresh, block.arguments))
    operations = []
    for operation in block.operations:
        operands = tuple(values.get(v, v) for v in operation.operands)
        regions = tuple(copied(r, values) for r in operation.regions)
        operations.append(replace(operation, operands=operands, regions=regions, results=tuple(map(fresh, operation.results))))
    yields = tuple(values.get(v, v) for v in block.yields)
    return replace(block, arguments=arguments, operations=tuple(operations), yields=yields)
