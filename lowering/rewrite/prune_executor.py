"""Executor graph -> executor graph: only what its fetches reach, by data and by control, as TensorFlow runs it.

An island is dead if any value that it captures is dead, even a value whose only user is an operation without a reader. So the
pass decides what a graph keeps before it prunes islands, and an island keeps all its captures: an Identity takes each capture
that no operation is left to take.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..dialects.tf.operator import RECEIVE, SEND, TensorFlowOp
from ..dialects.tf_executor.reached import messages, reached
from ..graph.graph import Block, Operation, Value, captures


def prune_graph(graph: Operation, prune_body: Callable[[Block], Block]) -> Operation:
    """Return the `tf_executor.graph` with the operations that its fetches reach; `prune_body` prunes the body of an island."""
    body = graph.regions[0]
    kept = reached(body.operations, body.yields)
    mortal = {v for o in body.operations for v in o.results}
    operations = tuple(prune_island(o, prune_body, mortal) if o.regions else o for o in body.operations if o in kept)
    return replace(graph, regions=(replace(body, operations=operations),))


def prune_island(island: Operation, prune_body: Callable[[Block], Block], mortal: set[Value]) -> Operation:
    """Return the island with the operations that its results and effects need, dead under the same conditions: `mortal` are the
    values that may be dead. An island that sends or receives stays unchanged: alone in an island these run dead, too."""
    if messages([island], (*SEND, *RECEIVE)):
        return island
    pruned = replace(island, regions=tuple(map(prune_body, island.regions)))
    left = set(captures(pruned))
    lost = [v for v in captures(island) if v in mortal and v not in left]
    body, *_ = pruned.regions
    return replace(pruned, regions=(replace(body, operations=(*map(identity, lost), *body.operations)),)) if lost else pruned


def identity(value: Value) -> Operation:
    return Operation(TensorFlowOp("tf.Identity"), (value,), (Value(value.name, value.type, value.position),), (), {},
                     value.position)
