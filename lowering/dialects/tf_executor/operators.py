"""The executor's operators, one class each, in the one normal form that every way of writing them is read to.

    graph        () -> (data...)                              one region; its block yields what `fetch` fetches
    island       (control...) -> (data..., control)           one region; its block yields what `yield` yields
    Switch       (data, predicate, control...) -> (false, true, control)
    _SwitchN     (data, index, control...) -> (data * num_outs, control)
    Merge        (data..., control...) -> (value, value_index, control)
    NextIteration.Source  () -> (value, token, control)
    NextIteration.Sink    (token, data, control...) -> ()
    LoopCond, Enter, Exit (data, control...) -> (data, control)
    ControlTrigger        (control...) -> (control)

`fetch` and `yield` are no operations: a block's `yields` are their operands (fetch: data, then control). Send and Recv of
the design document are read as islands that wrap `tf._Send` and `tf._Recv`: that is the only form that TensorFlow has, so
an interpreter meets one form and what is printed can be read by TensorFlow. Operators are in a table of their own, because
the table of TOSA's operators promises a type rule, a reference and an element for each.
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
"""Every executor operator by its name in MLIR, `tf_executor.SwitchN` of the design document too."""
PARALLEL_ITERATIONS = 10
"""What an Enter has if it does not say how many iterations may be in flight."""


RULES: list[Callable[[Operation, Operation | None], None]] = []
"""The rules of the dialect, which stand above its operators: `verify_operation` fills it."""


class ExecutorOp(Op):
    """An operator of the executor. `least` and `most` say how many data operands it takes, `results` how many data
    results it has (None: that depends); a control result comes after them."""
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
    """The data on the false or the true output, the other one dead."""
    least, most, takes = 2, 2, "data and a predicate"


class SwitchN(ExecutorOp, name="tf_executor._SwitchN", aliases=("tf_executor.SwitchN",)):
    """The data on the output that the index says, the last one for an index outside; the others dead."""
    num_outs: int = attribute("i64")
    least, most, takes = 2, 2, "data and an index"


class Merge(ExecutorOp, name="tf_executor.Merge"):
    """A live input, and which one it is."""
    most, takes = None, "one value or more"


class NextIterationSource(ExecutorOp, name="tf_executor.NextIteration.Source"):
    """What the Sink of the same token was given in the iteration before."""
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
    """The operands that are tensors."""
    return tuple(v for v in operation.operands if is_data(v.type))


def control_operands(operation: Operation) -> tuple[Value, ...]:
    return tuple(v for v in operation.operands if v.type == CONTROL)


def data_results(operation: Operation) -> tuple[Value, ...]:
    """The results that are tensors."""
    return tuple(v for v in operation.results if is_data(v.type))


def control_result(operation: Operation) -> Value | None:
    """The control result, which is the last one; a graph and a Sink have none."""
    last = operation.results[-1] if operation.results else None
    return last if last is not None and last.type == CONTROL else None


def token_of(operation: Operation) -> Value | None:
    """The token that joins a Source and its Sink."""
    return next((v for v in (*operation.operands, *operation.results) if v.type == TOKEN), None)


def fetched(graph: Operation) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """What a graph fetches: data, which are its results, and control."""
    yields = graph.regions[0].yields
    data = tuple(v for v in yields if is_data(v.type))
    return data, tuple(v for v in yields if v.type == CONTROL)


def wrapped(operation: Operation) -> Operation | None:
    """The one operation of an island that gives all its results back in order; None if there is more or less in it."""
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
    """The island that wraps an operation; `results` are the island's own."""
    assert isinstance(operation.op, TensorFlowOp)
    body = Block((), (operation,), operation.results, operation.position, operation.position)
    return Operation(Island(), controls, results, (body,), {}, operation.position, operation.location)
