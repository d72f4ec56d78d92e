"""Inputs of an ONNX graph that a node's operands are computed from: their values could provide the data that a node needs at
compile time. `translate` uses them to explain that a node cannot be lowered to TOSA."""
from __future__ import annotations

from ...graph.graph import Block, Function, Operation, Value

Names = frozenset[str]
NOTHING: Names = frozenset()


def reaching_inputs(function: Function, target: Operation) -> Names:
    """Return the names of the inputs that reach the operands of `target`, a node of the function or of its subgraphs."""
    reach: dict[Value, Names] = {v: frozenset([v.name]) for v in function.arguments}
    found: list[Names] = []

    def walk(block: Block) -> Names:
        """Record the inputs that the block's values are computed from; return all inputs that the block uses."""
        used = NOTHING
        for operation in block.operations:
            own = NOTHING.union(*(reach.get(v, NOTHING) for v in operation.operands))
            for region in operation.regions:
                reach.update(dict.fromkeys(region.arguments, own))
                own |= walk(region)
            if operation is target:
                found.append(own)
            reach.update(dict.fromkeys(operation.results, own))
            used |= own
        return used | NOTHING.union(*(reach.get(v, NOTHING) for v in block.yields))
    walk(function.body)
    return NOTHING.union(*found)
