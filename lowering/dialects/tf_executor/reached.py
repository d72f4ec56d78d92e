"""Operations that the fetches of an executor graph reach, by data and by control: only these run in TensorFlow.

An imported graph still holds initialisers and savers, which nothing fetches: they would reset the state on each call. A Source
needs its Sink, and a Recv the Sends of its message in the same graph.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...graph.foreign import find
from ...graph.graph import Operation, Value
from ..tf.operator import RECEIVE, SEND, is_tensorflow
from .frames import inputs_of
from .operators import NextIterationSink, NextIterationSource, token_of


def reached(operations: Sequence[Operation], fetched: tuple[Value, ...]) -> set[Operation]:
    """Return the operations that the fetched values need."""
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


def messages(operations: Sequence[Operation], spellings: tuple[str, ...]) -> dict[str, list[Operation]]:
    """Return the islands that hold an operation with one of these names, by the names of their messages."""
    found: dict[str, list[Operation]] = {}
    for island in operations:
        for region in island.regions:
            for operation in region.walk():
                if is_tensorflow(operation, *spellings):
                    found.setdefault(str(find(operation, "tensor_name")), []).append(island)
    return found
