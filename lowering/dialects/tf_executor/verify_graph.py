"""The verifier of a whole executor graph: its nodes, its fetches, its loops, its messages.

A NextIteration closes a loop, and its Source and Sink share a token: one of each, of one type. Every node has all its inputs in
one frame, and fetched values are in the root frame.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....runtime.errors import Label, Problem
from ...graph.foreign import find, spelling
from ...graph.graph import Operation, Value
from ..tf.operator import RECEIVE, SEND, is_tensorflow
from .frames import Frame, Frames
from .operators import Exit, NextIterationSink, NextIterationSource, token_of
from .types import CONTROL, TOKEN, is_data
from .verify import verify_node, wrong

ADDRESS = ("send_device", "recv_device", "send_device_incarnation")
"""Attributes that distinguish messages of one name."""


def verify_graph(graph: Operation) -> None:
    """Raise a Problem unless the graph is valid."""
    if len(graph.regions) != 1:
        raise wrong(graph, f"has one region, found {len(graph.regions)}")
    body = graph.regions[0]
    if graph.operands:
        raise wrong(graph, "takes no operands; what a graph reads it captures")
    if body.arguments:
        raise wrong(graph, "has no arguments, it captures what it reads", body.position)
    for operation in body.operations:
        verify_node(operation)
    check_fetch(graph)
    check_tokens(body.operations)
    check_messages(body.operations, check_frames(graph))


# Fetches

def check_fetch(graph: Operation) -> None:
    """Check that a graph fetches data, which are its results, then control."""
    body = graph.regions[0]
    place = body.terminator_position or graph.position
    control: Value | None = None
    for value in body.yields:
        if value.type == TOKEN:
            raise Problem(f"tf_executor.fetch takes no token, %{value.name} is one", place, kind="executor")
        if value.type == CONTROL:
            control = value
        elif control is not None:
            raise Problem(f"tf_executor.fetch takes its data before its control: %{value.name} stands after "
                          f"%{control.name}", place, kind="executor")
    data = [v for v in body.yields if is_data(v.type)]
    if len(data) != len(graph.results):
        raise Problem(f"tf_executor.fetch gives {len(data)} values, but the tf_executor.graph has {len(graph.results)} "
                      "results", place, kind="executor")
    for number, (value, result) in enumerate(zip(data, graph.results)):
        if value.type != result.type:
            raise Problem(f"tf_executor.fetch gives a {value.type} as value {number}, but that result of the "
                          f"tf_executor.graph is a {result.type}", place, kind="executor")


# Loops

def check_tokens(operations: Sequence[Operation]) -> None:
    """Check that each Source has one Sink, of its type, and each Sink a Source."""
    sources = {token_of(o): o for o in operations if isinstance(o.op, NextIterationSource)}
    sinks: dict[Value | None, Operation] = {}
    for operation in operations:
        if not isinstance(operation.op, NextIterationSink):
            continue
        token = operation.operands[0]
        source = sources.get(token)
        if source is None:
            raise wrong(operation, f"needs the token of a Source in its graph, %{token.name} is not one")
        if token in sinks:
            raise wrong(operation, f"is the second one for the token %{token.name}",
                        label=Label(sinks[token].position, "the first one"))
        sinks[token] = operation
        given, expected = operation.operands[1], source.results[0]
        if given.type != expected.type:
            raise wrong(operation, f"gives a {given.type} to a Source of {expected.type}",
                        label=Label(source.position, "its Source"))
    for own, source in sources.items():
        if own not in sinks:
            raise wrong(source, f"has no Sink: nothing takes its token %{own.name if own else ''}",
                        help="tf_executor.NextIteration.Sink [token] value closes the loop")


def check_frames(graph: Operation) -> Frames:
    """Check that all inputs of a node are in one frame, that an Exit is in a loop, and that fetched values are outside all
    loops."""
    body = graph.regions[0]
    frames = Frames(body)
    for operation in body.operations:
        inputs = frames.inputs[operation]
        check_inputs(operation, frames, inputs)
        if isinstance(operation.op, Exit) and frames.at[operation].parent is None:
            raise wrong(operation, "must be in a frame, its operand is in the root frame",
                        help="an Enter goes into a frame")
        if isinstance(operation.op, NextIterationSink):
            check_loop(operation, frames)
    for value in body.yields:
        frame = frames.of.get(value, frames.root)
        if is_data(value.type) and frame is not frames.root:
            raise Problem(f"tf_executor.fetch takes values of the root frame, %{value.name} is in {frame}",
                          body.terminator_position or graph.position, kind="executor",
                          help="an Exit takes a value out of its frame")
    return frames


def check_inputs(operation: Operation, frames: Frames, inputs: Sequence[Value]) -> None:
    if not inputs:
        return
    first: Frame = frames.of[inputs[0]]
    for value in inputs[1:]:
        frame = frames.of[value]
        if frame is not first:
            both = f"%{inputs[0].name} is in {first}, %{value.name} in {frame}"
            same = " of another parent" if str(frame) == str(first) else ""
            raise wrong(operation, f"has inputs in two frames: {both}{same}", help="an Enter takes a value into a frame")


def check_loop(sink: Operation, frames: Frames) -> None:
    """Check that a Source is in the frame of its Sink."""
    token = token_of(sink)
    source = frames.sources.get(token) if token is not None else None
    if source is not None and frames.at[source] is not frames.at[sink]:
        raise wrong(sink, f"is in {frames.at[sink]}, its Source in {frames.at[source]}",
                    label=Label(source.position, "its Source"))


# Messages

def check_messages(operations: Sequence[Operation], frames: Frames) -> None:
    """Check that _Send and _Recv name their message, and that no two Sends of a frame send the same one."""
    sent: dict[tuple[object, ...], Operation] = {}
    for island in operations:
        for operation in (o for region in island.regions for o in region.operations):
            if not is_tensorflow(operation, *SEND, *RECEIVE):
                continue
            name = find(operation, "tensor_name")
            if not isinstance(name, str) or not name:
                raise Problem(f"{spelling(operation)} needs a tensor_name", operation.position, kind="executor")
            if not is_tensorflow(operation, *SEND):
                continue
            if len(operation.operands) != 1:
                raise Problem(f"{spelling(operation)} sends one value, found {len(operation.operands)}", operation.position,
                              kind="executor")
            key = (frames.at[island], name, *(str(find(operation, n)) for n in ADDRESS))
            if key in sent:
                raise Problem(f"{spelling(operation)} sends {name!r}, which another one sends already", operation.position,
                              kind="executor", labels=(Label(sent[key].position, "the other one"),))
            sent[key] = operation
