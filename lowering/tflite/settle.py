"""A block's reads and writes of variables, moved to where they are needed: a write directly after the definition of its value,
a read before its first use. Reads and writes in between keep their order. Values live no longer than in the order of the file.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..graph.graph import Block, Operation, Value, captures


def settle(block: Block) -> Block:
    """Return the block with its reads and writes settled, in its regions, too."""
    operations = [replace(o, regions=tuple(settle(r) for r in o.regions)) if o.regions else o for o in block.operations]
    moved = hoist_writes(operations)
    return replace(block, operations=tuple(sink_reads(moved, block.yields)))


def hoist_writes(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations with each write as early as its value and the earlier effects on its variable allow."""
    behind: dict[int, list[Operation]] = {}
    made: dict[Value, int] = {}
    last: dict[str, int] = {}
    everything = -1
    for number, operation in enumerate(operations):
        made.update((v, number) for v in operation.results)
        match operation.op.variable_effect:
            case "write":
                symbol = symbol_of(operation)
                place = max(made.get(operation.operands[0], -1), last.get(symbol, -1), everything)
                behind.setdefault(place, []).append(operation)
                last[symbol] = max(place, last.get(symbol, -1))
                continue
            case "read":
                last[symbol_of(operation)] = number
            case _ if has_effects(operation):
                everything = number
        behind.setdefault(number, []).insert(0, operation)
    return [o for place in sorted(behind) for o in behind[place]]


def sink_reads(operations: Sequence[Operation], yields: Iterable[Value]) -> list[Operation]:
    """Return the operations with each read as late as the first use of its value and the later effects on its variable
    allow."""
    before: dict[int, list[Operation]] = {}
    used = dict.fromkeys(yields, len(operations))
    written: dict[str, int] = {}
    everything = len(operations)
    for number in reversed(range(len(operations))):
        operation = operations[number]
        match operation.op.variable_effect:
            case "read":
                symbol = symbol_of(operation)
                place = min(used.get(operation.results[0], len(operations)), written.get(symbol, len(operations)), everything)
                before.setdefault(place, []).insert(0, operation)
                continue
            case "write":
                written[symbol_of(operation)] = number
            case _ if has_effects(operation):
                everything = number
        for value in (*operation.operands, *captures(operation)):
            used[value] = number
        before.setdefault(number, []).append(operation)
    return [o for place in sorted(before) for o in before[place]]


def has_effects(operation: Operation) -> bool:
    return any(inner.op.variable_effect for region in operation.regions for inner in region.walk())


def symbol_of(operation: Operation) -> str:
    return str(getattr(operation.op, "symbol", ""))
