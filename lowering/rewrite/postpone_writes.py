"""Graph -> graph: a write to a variable moves down, below the last operation that still reads the old contents.

A streaming model writes its state back as soon as it has the next one, and then computes with the old state and the new input.
If the write comes last, no copy of the old state is needed beside the variable. A write after a check needs no copy of the old
contents in case the check fails.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..graph.graph import Block, Module, Operation, Value, uses
from ..graph.types import TensorType

LAYOUT = frozenset(f"tosa.{name}" for name in ("concat", "identity", "identityn", "pad", "reshape", "reverse", "slice",
                                               "tile", "transpose"))
"""Layout operators: their results may be read in the memory of their operands."""


def postpone_writes(module: Module) -> Module:
    """Return the module with its writes as late as useful, and no later."""
    return replace(module, functions=tuple(replace(f, body=postpone(f.body)) for f in module.functions))


def postpone(block: Block) -> Block:
    """Return the block with each write after the last use of a view of its variable, in regions, too."""
    operations = [replace(o, regions=tuple(map(postpone, o.regions))) if o.regions else o for o in block.operations]
    counts = {value: len(users) for value, users in uses(block).items()}
    for write in [o for o in operations if o.op.variable_effect == "write"]:
        start = operations.index(write)
        end = last_use(symbol(write), operations, start, counts)
        operations.insert(end, operations.pop(start))
    return replace(block, operations=tuple(operations))


def last_use(variable: str, operations: list[Operation], start: int, counts: Mapping[Value, int]) -> int:
    """Return the last operation that the write at `start` should follow, or `start`: an operation that may end the run, or that
    reads the contents that the write overwrites, because it reads a view, or continues elementwise a computation on a view, as
    part of the same kernel."""
    views, parts = views_of(variable, operations[:start]), set[Value]()
    end = start
    for place in range(start + 1, limit(variable, operations, start)):
        operation = operations[place]
        if operation.op.is_check:  # then a run that fails has nothing to undo
            end = place
        elif views.intersection(operation.operands):
            end = place
            (views if operation.op.name in LAYOUT else parts).update(operation.results)
        elif any(v in parts and counts[v] == 1 and same_size(v, operation) for v in operation.operands):
            end = place
            parts.update(operation.results)
    return end


def same_size(value: Value, operation: Operation) -> bool:
    """True if the operation's one result has as many elements as the value."""
    types = [v.type for v in (value, *operation.results)]
    sizes = [t.size for t in types if isinstance(t, TensorType) and t.is_static]
    return len(sizes) == len(types) == 2 and sizes[0] == sizes[1]


def limit(variable: str, operations: list[Operation], start: int) -> int:
    """Return the index of the first operation after `start` that a write must precede: one that may access the variable, or
    that has regions, whose many iterations nothing inside may delay."""
    for place in range(start + 1, len(operations)):
        operation = operations[place]
        if operation.regions or (operation.op.variable_effect and symbol(operation) == variable):
            return place
    return len(operations)


def views_of(variable: str, operations: list[Operation]) -> set[Value]:
    """Return the values that may be read in the variable's memory."""
    found: set[Value] = set()
    for operation in operations:
        reads = operation.op.variable_effect == "read" and symbol(operation) == variable
        if reads or (operation.op.name in LAYOUT and found.intersection(operation.operands)):
            found.update(operation.results)
    return found


def symbol(operation: Operation) -> str:
    return str(getattr(operation.op, "symbol", ""))
