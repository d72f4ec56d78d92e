"""The executor's operators, one class each, in the normal form to which the reader brings every spelling.

    graph        () -> (data...)                              one region; its block yields what `fetch` fetches
    island       (control...) -> (data..., control)           one region; its block yields what `yield` yields
    Switch       (data, predicate, control...) -> (false, true, control)
    _SwitchN     (data, index, control...) -> (data * num_outs, control)
    Merge        (data..., control...) -> (value, value_index, control)
    NextIteration.Source  () -> (value, token, control)
    NextIteration.Sink    (token, data, control...) -> ()
    LoopCond, Enter, Exit (data, control...) -> (data, control)
    ControlTrigger        (control...) -> (control)

`fetch` and `yield` are not operations: a block's `yields` are their operands (fetch: data, then control). Send and Recv of the
design document are read as islands that wrap `tf._Send` and `tf._Recv`: TensorFlow has only this form, so that interpreters
handle one form and TensorFlow can read the printed text. Operators are in a table of their own, because the table of TOSA's
operators requires a type rule, a reference and an element for each.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...graph.graph import Block, Operation, Value
from ...graph.operator import Op, attribute
from ..tf.operator import RECEIVE, SEND, TensorFlowOp, is_tensorflow
from .types import CONTROL, TOKEN, is_data

PREFIX = "tf_executor."
EXECUTOR_OPERATORS: dict[str, type[ExecutorOp]] = {}
"""Every executor operator by its name in MLIR, including `tf_executor.SwitchN` of the design document."""
PARALLEL_ITERATIONS = 10
"""Default maximum number of iterations of an Enter that may be in flight."""


RULES: list[Callable[[Operation, Operation | None], None]] = []
"""The rules of the dialect, which are in a layer above its operators: `verify_operation` fills the list."""


class ExecutorOp(Op):
    """An operator of the executor. `least` and `most` bound its number of data operands, `results` is its number of data
    results (None: variable); a control result comes after them."""
    foreign = True
    least: ClassVar[int] = 1
    most: ClassVar[int | None] = 1
    takes: ClassVar[str] = "one value"
    """The data operands, for messages."""

    def __init_subclass__(cls, name: str = "", aliases: tuple[str, ...] = (), **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cls.name, cls.aliases = name, aliases
        EXECUTOR_OPERATORS.update((key, cls) for key in (name, *aliases))

    def verify(self, operation: Operation, parent: Operation | None) -> None:
        RULES[0](operation, parent)


class Graph(ExecutorOp, name="tf_executor.graph"):
    """A graph that the executor runs: each operation when its inputs are there."""
    regions = 1
    least, most, takes = 0, 0, "no operands"


class Island(ExecutorOp, name="tf_executor.island"):
    """Operations that run in order, all or none: not if a captured value or a control operand is dead."""
    regions = 1
    least, most, takes = 0, 0, "control only"


class Switch(ExecutorOp, name="tf_executor.Switch"):
    """Gives the data to the false or the true output; the other output is dead."""
    least, most, takes = 2, 2, "data and a predicate"


class SwitchN(ExecutorOp, name="tf_executor._SwitchN", aliases=("tf_executor.SwitchN",)):
    """Gives the data to the output of the index, the last one for an index out of range; the other outputs are dead."""
    num_outs: int = attribute("i64")
    least, most, takes = 2, 2, "data and an index"


class Merge(ExecutorOp, name="tf_executor.Merge"):
    """Gives a live input and its number."""
    most, takes = None, "one value or more"


class NextIterationSource(ExecutorOp, name="tf_executor.NextIteration.Source"):
    """Gives the operand of the Sink of the same token in the previous iteration."""
    least, most, takes = 0, 0, "no operands"


class NextIterationSink(ExecutorOp, name="tf_executor.NextIteration.Sink"):
    """Gives a value to the next iteration."""
    takes = "a token and one value"


class LoopCond(ExecutorOp, name="tf_executor.LoopCond"):
    """Forwards the condition of a loop."""


class Enter(ExecutorOp, name="tf_executor.Enter"):
    """Forwards its input into iteration 0 of a frame, or, `is_constant`, into all of its iterations.

    Enters without a frame's name share one frame.
    """
    frame_name: str = attribute("string", default="")
    parallel_iterations: int = attribute("i64", default=PARALLEL_ITERATIONS)
    is_constant: bool = attribute("bool", default=False)


class Exit(ExecutorOp, name="tf_executor.Exit"):
    """Forwards its input out of its frame."""


class ControlTrigger(ExecutorOp, name="tf_executor.ControlTrigger"):
    """Waits for its inputs and is always live."""
    least, most, takes = 0, 0, "control only"


def data_operands(operation: Operation) -> tuple[Value, ...]:
    """Return the operands that are tensors."""
    return tuple(v for v in operation.operands if is_data(v.type))


def control_operands(operation: Operation) -> tuple[Value, ...]:
    return tuple(v for v in operation.operands if v.type == CONTROL)


def data_results(operation: Operation) -> tuple[Value, ...]:
    """Return the results that are tensors."""
    return tuple(v for v in operation.results if is_data(v.type))


def control_result(operation: Operation) -> Value | None:
    """Return the control result, which is the last one; a graph and a Sink have none."""
    last = operation.results[-1] if operation.results else None
    return last if last is not None and last.type == CONTROL else None


def token_of(operation: Operation) -> Value | None:
    """Return the token that joins a Source and its Sink."""
    return next((v for v in (*operation.operands, *operation.results) if v.type == TOKEN), None)


def fetched(graph: Operation) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Return the fetched values of a graph: data, which are its results, and control."""
    yields = graph.regions[0].yields
    data = tuple(v for v in yields if is_data(v.type))
    return data, tuple(v for v in yields if v.type == CONTROL)


def wrapped(operation: Operation) -> Operation | None:
    """Return the one operation of an island that yields all its results in order; None if the island has more or less in it."""
    if not isinstance(operation.op, Island) or len(operation.regions) != 1:
        return None
    body = operation.regions[0]
    only = body.operations[0] if len(body.operations) == 1 else None
    return only if only is not None and only.results == body.yields else None


def is_send(operation: Operation) -> bool:
    """True if an island is a Send, which runs even when it is dead."""
    inner = wrapped(operation)
    return inner is not None and is_tensorflow(inner, *SEND)


def is_receive(operation: Operation) -> bool:
    """True if an island is a Recv, which runs even when it is dead."""
    inner = wrapped(operation)
    return inner is not None and is_tensorflow(inner, *RECEIVE)


def island_of(operation: Operation, controls: tuple[Value, ...], results: tuple[Value, ...]) -> Operation:
    """Return the island that wraps an operation; `results` are the island's own."""
    assert isinstance(operation.op, TensorFlowOp)
    body = Block((), (operation,), operation.results, operation.position, operation.position)
    return Operation(Island(), controls, results, (body,), {}, operation.position, operation.location)
