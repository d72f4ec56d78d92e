"""Graph -> graph: drop operations whose results nobody reads, and that write no variable and check nothing.

Writes among TensorFlow's operations stay, too; an executor graph keeps its operations that its fetches reach.
"""
from __future__ import annotations

from dataclasses import replace

from ..dialects.tf import effects
from ..dialects.tf_executor.operators import Graph
from ..graph.graph import Block, Function, Module, Operation, Value, captures
from .prune_executor import prune_graph


def prune(module: Module) -> Module:
    """Return the module with only the operations that its results and its variables need."""
    return replace(module, functions=tuple(prune_function(f) for f in module.functions))


def prune_function(function: Function) -> Function:
    return replace(function, body=prune_block(function.body, set()))


def has_effect(operation: Operation) -> bool:
    """True if running an operation is visible in a variable, in an error, or in not ending: loops stay."""
    op = operation.op
    own = bool(op.variable_effect) or op.is_check or op.name == "tosa.while_loop"
    return own or (op.foreign and effects.has_effect(operation)) or any(
        has_effect(inner) for region in operation.regions for inner in region.walk())


def prune_block(block: Block, needed: set[Value]) -> Block:
    """Return the block without unneeded operations; `needed` gathers every value that is read, from the end of the function
    on."""
    needed.update(block.yields)
    kept: list[Operation] = []
    for operation in reversed(block.operations):
        if isinstance(operation.op, Graph):
            operation = prune_graph(operation, lambda body: prune_block(body, set()))
        if not (has_effect(operation) or any(r in needed for r in operation.results)):
            continue
        needed.update(operation.operands)
        if isinstance(operation.op, Graph):
            needed.update(captures(operation))
            kept.append(operation)
            continue
        regions = tuple(prune_block(r, needed) for r in reversed(operation.regions))[::-1]  # a later one may read
        kept.append(replace(operation, regions=regions) if operation.regions else operation)
    return replace(block, operations=tuple(reversed(kept)))
