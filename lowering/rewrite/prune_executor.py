"""Executor graph -> executor graph: only what its fetches reach, by data and by control, as TensorFlow runs it.

An imported graph still holds initialisers and savers, which nothing fetches: running them would reset the state on each call.
A Source needs its Sink, and a Recv the Sends of its message in the same graph.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..dialects.tf.operator import RECEIVE, SEND, find, is_tensorflow
from ..dialects.tf_executor.frames import inputs_of
from ..dialects.tf_executor.operators import NextIterationSink, NextIterationSource, token_of
from ..graph.graph import Block, Operation, Value


def prune_graph(graph: Operation, prune_body: Callable[[Block], Block]) -> Operation:
    """The `tf_executor.graph` with what its fetches reach; `prune_body` prunes what is inside an island."""
    body = graph.regions[0]
    operations = [replace(o, regions=tuple(map(prune_body, o.regions))) if o.regions else o for o in body.operations]
    kept = reached(operations, body.yields)
    return replace(graph, regions=(replace(body, operations=tuple(o for o in operations if o in kept)),))


def reached(operations: list[Operation], fetched: tuple[Value, ...]) -> set[Operation]:
    """The operations that the fetched values need."""
    makers = {v: o for o in operations for v in o.results}
    sinks = {o.operands[0]: o for o in operations if isinstance(o.op, NextIterationSink)}
    sends = messages(operations, SEND)
    kept: set[Operation] = set()
    waiting = [makers[v] for v in fetched if v in makers]
    while waiting:
        operation = waiting.pop()
        if operation in kept:
            continue
        kept.add(operation)
        waiting += (makers[v] for v in inputs_of(operation) if v in makers)
        token = token_of(operation) if isinstance(operation.op, NextIterationSource) else None
        waiting += [sinks[token]] if token in sinks else []
        for name in messages([operation], RECEIVE):
            waiting += sends.get(name, [])
    return kept


def messages(operations: list[Operation], spellings: tuple[str, ...]) -> dict[str, list[Operation]]:
    """The islands that hold an operation of these names, by the names of their messages."""
    found: dict[str, list[Operation]] = {}
    for island in operations:
        for region in island.regions:
            for operation in region.walk():
                if is_tensorflow(operation, *spellings):
                    found.setdefault(str(find(operation, "tensor_name")), []).append(island)
    return found
