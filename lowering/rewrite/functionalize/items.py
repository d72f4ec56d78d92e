"""A frame of an executor graph during its lowering to TOSA: its items in order, each with the bit that tells when it is live.

An item reads and writes values of the graph, and tokens that only order items: effects, messages between Send and Recv, whether
an Exit was live.
"""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from ....runtime.records import dataclass
from ...dialects.tf.operator import is_tensorflow
from ...dialects.tf_executor.frames import Frame
from ...dialects.tf_executor.operators import (
    Enter,
    Island,
    LoopCond,
    Merge,
    Switch,
    SwitchN,
    data_operands,
    data_results,
    is_receive,
    is_send,
    wrapped,
)
from ...graph.foreign import find
from ...graph.graph import Operation, Value
from .decision_diagrams import Bit


class Effect(NamedTuple):
    """The n-th effect: an operation that changes or reads state that outlives the graph. Effects stay in order."""
    number: int


class Message(NamedTuple):
    """The message from a Send to its Recv."""
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An operation, or a loop, at its position in a frame."""
    operation: Operation | None
    loop: LoopFrame | None
    bit: Bit
    reads: tuple[Hashable, ...]
    writes: tuple[Hashable, ...]

    def __str__(self) -> str:
        return f'frame "{self.loop.frame.name}"' if self.loop else str(self.operation)


@dataclass(frozen=True, slots=True, eq=False)
class LoopFrame:
    """A frame: the items of each of its iterations, in order. The root frame runs once.

    `entered`: the bit for running at all. `care`: the condition that holds in every iteration. `again`: whether another
    iteration follows. `starts`: the Enter of each Merge of a Source and an Enter, if that Merge is live in every iteration:
    then the loop carries the Merge. `ending`: Exits that are live in the last iteration and in no other. `lasting`: Sources
    that are live in every iteration but the first.
    """
    frame: Frame
    items: tuple[Item, ...]
    enters: tuple[Operation, ...]
    sources: tuple[Operation, ...]
    sinks: Mapping[Operation, Operation]
    exits: tuple[Operation, ...]
    entered: Bit
    care: Bit
    again: Bit
    starts: Mapping[Operation, Operation]
    ending: frozenset[Operation]
    lasting: frozenset[Operation]


def canonical(value: Value, makers: Mapping[Value, Operation]) -> Value:
    """Return the value that `value` equals, through operations that forward their operand. Of equal results of an island,
    return the first."""
    while (maker := makers.get(value)) is not None:
        if isinstance(maker.op, LoopCond) or (isinstance(maker.op, Switch | SwitchN) and value in data_results(maker)):
            value = data_operands(maker)[0]
        elif isinstance(maker.op, Island) and (same := handed_on(maker, value)) is not value:
            value = same
        else:
            return value
    return value


def handed_on(island: Operation, result: Value) -> Value:
    """Return the value that a result of an island equals, through the Identities in the island: a value around the island, or
    its first result that is the same."""
    body, results = island.regions[0], data_results(island)
    if result not in results:
        return result
    copies = {o.results[0]: o.operands[0] for o in body.operations if is_tensorflow(o, "tf.Identity")}
    origins = [origin(v, copies) for v in body.yields]
    found = origins[results.index(result)]
    inside = {v for o in body.operations for v in o.results}
    return results[origins.index(found)] if found in inside else found


def origin(value: Value, copies: Mapping[Value, Value]) -> Value:
    """Return the value that a chain of copies begins with."""
    while value in copies:
        value = copies[value]
    return value


def message_of(island: Operation) -> Message:
    """Return the message that an island exchanges, which is a Send or a Recv."""
    inner = wrapped(island)
    assert inner is not None
    return Message(str(find(inner, "tensor_name")))


TRIVIAL = ("tf.Identity", "tf.Const", "tf.NoOp")


def is_free(operation: Operation) -> bool:
    """True if an operation does no work at run time: it forwards values, or selects one of them."""
    if isinstance(operation.op, Island):
        body = operation.regions[0]
        return is_send(operation) or is_receive(operation) or all(is_tensorflow(o, *TRIVIAL) for o in body.operations)
    return not isinstance(operation.op, Enter)


def merge_of(source: Operation, users: Mapping[Value, list[Operation]]) -> Operation | None:
    """Return the Merge that is the only reader of a Source and has one other input; None if there is none."""
    readers = users.get(source.results[0], [])
    if len(readers) == 1 and isinstance(readers[0].op, Merge) and len(data_operands(readers[0])) == 2:
        return readers[0]
    return None
