"""Graph -> graph: operations replaced by others that give the same results; the driver of rewrites of single operators."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...runtime.errors import Problem
from ..graph.graph import Block, BlockBuilder, Module, Operation, Value

Expansion = Callable[[BlockBuilder, Operation], tuple[Value, ...]]
"""A function that adds to a builder the operations that compute the results of one operation, and returns these results."""


def expand(module: Module, wanted: Callable[[Operation], bool], expansion: Expansion) -> Module:
    """The module with every operation that is `wanted` replaced; unchanged (the same object) if it has none."""
    if not any(wanted(o) for f in module.functions for o in f.body.walk()):
        return module
    return replace(module, functions=tuple(replace(f, body=expanded(f.body, wanted, expansion, {}))
                                           for f in module.functions))


def expanded(block: Block, wanted: Callable[[Operation], bool], expansion: Expansion, outer: Mapping[Value, Value]
             ) -> Block:
    """Return the block expanded, with the replacements of values in it and around it applied."""
    values, operations = dict(outer), []
    for operation in block.operations:
        operands = tuple(values.get(v, v) for v in operation.operands)
        regions = tuple(expanded(r, wanted, expansion, values) for r in operation.regions)
        operation = replace(operation, operands=operands, regions=regions)
        if not wanted(operation):
            operations.append(operation)
            continue
        builder = BlockBuilder(f"{operation.results[0].name}_" if operation.results else "")
        try:
            values.update(zip(operation.results, expansion(builder, operation)))
        except Problem as problem:
            raise problem.at(operation.position) from None
        operations += builder.operations
    return replace(block, operations=tuple(operations), yields=tuple(values.get(v, v) for v in block.yields))
