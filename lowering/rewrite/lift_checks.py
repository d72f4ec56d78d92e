"""Graph -> graph: a check of a condition in the branch for the false condition becomes a check before the branch.

TensorFlow writes each of its assertions as `tf.If` of the condition, with `tf.Assert` of the same condition in its else branch.
The check does not need the branch, and a write to a variable may move below it.
"""
from __future__ import annotations

from dataclasses import replace

from ..graph.graph import Block, Module, Operation, Value
from .prune import has_effect

CONDITIONAL = "tosa.cond_if"


def lift_checks(module: Module) -> Module:
    """The module with checks moved before the branches; unchanged (the same object) if no branch has one."""
    if not any(o.op.name == CONDITIONAL and leading(o) for f in module.functions for o in f.body.walk()):
        return module
    return replace(module, functions=tuple(replace(f, body=lifted(f.body)) for f in module.functions))


def lifted(block: Block) -> Block:
    """Return the block with each liftable check before its branch, from the innermost branches outwards."""
    operations: list[Operation] = []
    for operation in block.operations:
        if operation.regions:
            operation = replace(operation, regions=tuple(map(lifted, operation.regions)))
        checks = leading(operation) if operation.op.name == CONDITIONAL else []
        operations += [replace(check, operands=operation.operands[:1]) for check in checks]
        operations.append(without(operation, checks) if checks else operation)
    return replace(block, operations=tuple(operations))


def leading(branch: Operation) -> list[Operation]:
    """Return the check that begins the region for false, if its condition is the branch's own, as a list of at most one: no run
    reaches the operations after it."""
    condition, otherwise = branch.operands[0], branch.regions[1]
    first = next((o for o in otherwise.operations if has_effect(o)), None)
    return [first] if first and first.op.is_check and stands_for(first.operands[0], branch) is condition else []


def stands_for(value: Value, branch: Operation) -> Value:
    """Return the outer value that an argument of a branch's region for false stands for; any other value unchanged."""
    return dict(zip(branch.regions[1].arguments, branch.operands[1:])).get(value, value)


def without(branch: Operation, checks: list[Operation]) -> Operation:
    then, otherwise = branch.regions
    kept = tuple(o for o in otherwise.operations if o not in checks)
    return replace(branch, regions=(then, replace(otherwise, operations=kept)))
