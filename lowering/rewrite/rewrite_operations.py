"""The walk of graph passes that replace one operation by another: over all functions, blocks and regions."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..graph.graph import Block, Module, Operation, Value

Definitions = Mapping[Value, Operation]
"""Operations that define the values of a block and of the enclosing blocks."""
Rewrite = Callable[[Operation, Definitions], Operation]
"""A function that returns the replacement of an operation without regions, or the operation itself."""


def rewrite_operations(module: Module, rewrite: Rewrite) -> Module:
    """Return the module with `rewrite` applied to each operation that has no regions."""
    return replace(module, functions=tuple(replace(f, body=in_block(f.body, {}, rewrite)) for f in module.functions))


def in_block(block: Block, outer: Definitions, rewrite: Rewrite) -> Block:
    definitions = {**outer, **{r: o for o in block.operations for r in o.results}}

    def rewritten(operation: Operation) -> Operation:
        if operation.regions:
            return replace(operation, regions=tuple(in_block(r, definitions, rewrite) for r in operation.regions))
        return rewrite(operation, definitions)
    return replace(block, operations=tuple(map(rewritten, block.operations)))
