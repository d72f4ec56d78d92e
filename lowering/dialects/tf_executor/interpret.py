"""Interpreter of a `tf_executor.graph`, as TensorFlow's executor runs it: each operation that the fetches reach, when its
inputs are there, with dead values, frames and iterations. One operation at a time runs, so that there are no races; of two live
inputs a Merge takes the first, which TensorFlow leaves open.

A node runs in an instance of a frame and an iteration of it. There it waits for its inputs, each of which arrives once, live or
dead. Several graphs may run at once and communicate through Send and Recv (`run_together`).
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...graph.graph import Block, Operation, Value
from ..tf.operator import RECEIVE, SEND, is_tensorflow
from ..tf.values import Datum
from .frames import Frame, Frames
from .operators import (
    ControlTrigger,
    Enter,
    Exit,
    LoopCond,
    Merge,
    NextIterationSink,
    NextIterationSource,
    Switch,
    SwitchN,
    control_result,
    data_operands,
    data_results,
    fetched,
    is_receive,
    is_send,
    token_of,
    wrapped,
)
from .reached import messages, reached
from .types import CONTROL

if TYPE_CHECKING:
    from ..tf.interpret import Environment, Scope


class Dead:
    """The value of an operation that does not run."""

    def __repr__(self) -> str:
        return "dead"


DEAD = Dead()
LIVE = True
"""The value of a live control edge."""


@dataclass(eq=False)
class FrameInstance:
    """A frame as one iteration of its parent frame has entered it. `values` are those of each iteration."""
    frame: Frame
    parent: tuple[FrameInstance, int] | None = None
    values: list[dict[Value, Datum]] = field(default_factory=lambda: [{}])
    started: set[tuple[Operation, int]] = field(default_factory=set)
    entered: set[Operation] = field(default_factory=set)
    constants: list[tuple[Operation, Datum]] = field(default_factory=list)
    left: set[Operation] = field(default_factory=set)
    """Exits that were live."""
    unfinished: int = 0
    """Number of ready nodes in the frame, and of nested frames that have not ended."""
    has_ended: bool = False


Node = tuple[Operation, FrameInstance, int]


class GraphExecution:
    """One run of a graph."""

    def __init__(self, environment: Environment, graph: Operation, scope: Scope) -> None:
        self.environment, self.graph, self.scope = environment, graph, scope
        self.block = run_of(graph.regions[0])
        self.frames = Frames(self.block)
        self.root = FrameInstance(self.frames.root)
        self.children: dict[tuple[FrameInstance, int, str], FrameInstance] = {}
        self.ready: deque[Node] = deque()
        self.waiting: list[Node] = []
        """Recvs that wait for their data."""
        self.sources = {token_of(o): o for o in self.block.operations if isinstance(o.op, NextIterationSource)}
        self.enters: dict[Frame, int] = {}
        for operation in self.block.operations:
            if isinstance(operation.op, Enter):
                frame = self.frames.of[operation.results[0]]
                self.enters[frame] = self.enters.get(frame, 0) + 1
        for operation in self.block.operations:
            if not self.frames.inputs[operation] and not isinstance(operation.op, NextIterationSource):
                self.start(operation, self.root, 0)

    # ---- the queue ---------------------------------------------------------------------------------------------------
    def step(self) -> bool:
        """Run one ready node, or end a frame; return whether there was something to do."""
        for node in list(self.waiting):
            if self.key(*node) in self.environment.rendezvous:
                self.waiting.remove(node)
                self.ready.append(node)
        if not self.ready:
            return False
        operation, instance, iteration = self.ready.popleft()
        if is_receive(operation) and self.key(operation, instance, iteration) not in self.environment.rendezvous:
            self.waiting.append((operation, instance, iteration))
            return True
        try:
            self.run(operation, instance, iteration)
        except Problem as problem:
            raise problem.at(operation.position) from None
        instance.unfinished -= 1
        self.end_frames(instance)
        return True

    def start(self, operation: Operation, instance: FrameInstance, iteration: int) -> None:
        """Make a node ready, once."""
        if (operation, iteration) not in instance.started:
            instance.started.add((operation, iteration))
            instance.unfinished += 1
            self.ready.append((operation, instance, iteration))

    def deliver(self, value: Value, datum: Datum, instance: FrameInstance, iteration: int) -> None:
        """Deliver a value to an iteration; nodes that waited for it alone become ready."""
        instance.values[iteration][value] = datum
        for user in self.frames.users.get(value, ()):
            if self.is_ready(user, instance, iteration):
                self.start(user, instance, iteration)

    def is_ready(self, operation: Operation, instance: FrameInstance, iteration: int) -> bool:
        values, inputs = instance.values[iteration], self.frames.inputs[operation]
        if not isinstance(operation.op, Merge):
            return all(v in values for v in inputs)
        data = set(data_operands(operation))
        if not all(v in values for v in inputs if v not in data):
            return False
        return self.merged(operation, instance, iteration) is not None

    def merged(self, operation: Operation, instance: FrameInstance, iteration: int) -> tuple[int, Datum] | None:
        """Return the number and the value of the input that a Merge takes; None while one may still arrive. In the first
        iteration nothing arrives along a back edge, later nothing through an Enter."""
        values, expected = instance.values[iteration], []
        for number, value in enumerate(data_operands(operation)):
            datum = self.seen(value, values)
            if datum is not None and datum is not DEAD:
                return number, datum
            if self.may_come(value, iteration):
                expected.append(datum)
        return (0, DEAD) if all(d is DEAD for d in expected) else None

    def may_come(self, value: Value, iteration: int) -> bool:
        producer = self.producers.get(value)
        if producer is None:
            return True
        if iteration == 0:
            return not isinstance(producer.op, NextIterationSource)
        return not isinstance(producer.op, Enter) or producer.op.is_constant

    @property
    def producers(self) -> Mapping[Value, Operation]:
        if not hasattr(self, "_producers"):
            self._producers = {v: o for o in self.block.operations for v in o.results}
        return self._producers

    def seen(self, value: Value, values: Mapping[Value, Datum]) -> Datum | None:
        """Return a value in an iteration; values from outside of the graph are in each."""
        return values[value] if value in values else self.scope.get(value)

    # ---- one node ----------------------------------------------------------------------------------------------------
    def run(self, operation: Operation, instance: FrameInstance, iteration: int) -> None:
        values = instance.values[iteration]
        inputs = [self.seen(v, values) for v in self.frames.inputs[operation]]
        is_dead = any(d is DEAD for d in inputs)
        data = [self.seen(v, values) for v in data_operands(operation)]
        is_dead = is_dead or any(d is DEAD for d in data)
        match operation.op:
            case Merge():
                found = self.merged(operation, instance, iteration)
                assert found is not None
                number, datum = found
                controls = [values[v] for v in self.frames.inputs[operation] if v.type == CONTROL]
                dead = datum is DEAD or (self.environment.rfc_merge and DEAD in controls)
                self.give(operation, instance, iteration, [DEAD] * 2 if dead else [datum, np.array(number, np.int32)], dead)
            case ControlTrigger():
                self.give(operation, instance, iteration, [], False)
            case Switch() | SwitchN() if not is_dead:
                taken = self.output(operation, data[1])
                self.give(operation, instance, iteration, [
                    data[0] if i == taken else DEAD for i in range(len(data_results(operation)))], False)
            case Enter():
                self.enter(operation, instance, iteration, DEAD if is_dead else data[0])
            case Exit():
                self.exit(operation, instance, DEAD if is_dead else data[0])
            case NextIterationSink():
                if not is_dead:
                    self.next(operation, instance, iteration, data[0])
            case LoopCond() if not is_dead:
                self.give(operation, instance, iteration, data, False)
            case _ if is_send(operation) or is_receive(operation):
                self.exchange(operation, instance, iteration, is_dead)
            case _ if is_dead:
                self.give(operation, instance, iteration, [DEAD] * len(data_results(operation)), True)
            case _:
                self.give(operation, instance, iteration, self.island(operation, values), False)

    def output(self, operation: Operation, choice: Datum) -> int:
        """Return the number of the output that a Switch selects."""
        from ..tf.interpret import branch_of, is_true
        return branch_of(choice, operation.op.num_outs) if isinstance(operation.op, SwitchN) else int(is_true(choice))

    def give(self, operation: Operation, instance: FrameInstance, iteration: int, data: Sequence[Datum], is_dead: bool) -> None:
        """Deliver results, and the control result."""
        if self.environment.observe is not None:
            self.environment.observe(operation, [None if d is DEAD else d for d in data])
        for value, datum in zip(data_results(operation), data, strict=True):
            self.deliver(value, datum, instance, iteration)
        control = control_result(operation)
        if control is not None:
            self.deliver(control, DEAD if is_dead else LIVE, instance, iteration)

    def island(self, operation: Operation, values: Mapping[Value, Datum]) -> Sequence[Datum]:
        """Run the operations of an island in order; all its captures are live."""
        from ..tf.interpret import run_block
        scope = dict(self.scope)
        scope.update((v, values[v]) for v in self.frames.inputs[operation] if v in values)
        return run_block(self.environment, operation.regions[0], scope)

    # ---- frames ------------------------------------------------------------------------------------------------------
    def enter(self, operation: Operation, instance: FrameInstance, iteration: int, datum: Datum) -> None:
        assert isinstance(operation.op, Enter)
        key = instance, iteration, operation.op.frame_name
        child = self.children.get(key)
        if child is None:
            child = FrameInstance(self.frames.of[operation.results[0]], (instance, iteration))
            self.children[key] = child
            instance.unfinished += 1
        child.entered.add(operation)
        if operation.op.is_constant:
            child.constants.append((operation, datum))
            for number in range(len(child.values)):
                self.give(operation, child, number, [datum], datum is DEAD)
        else:
            self.give(operation, child, 0, [datum], datum is DEAD)
        self.end_frames(child)

    def exit(self, operation: Operation, instance: FrameInstance, datum: Datum) -> None:
        """Send a live value out of the frame; a dead one is known when the frame ends."""
        assert instance.parent is not None
        if datum is not DEAD:
            instance.left.add(operation)
            self.give(operation, *instance.parent, [datum], False)

    def next(self, operation: Operation, instance: FrameInstance, iteration: int, datum: Datum) -> None:
        """Send a value into the next iteration, which begins with the first value that arrives."""
        if iteration + 1 == len(instance.values):
            instance.values.append({})
            for entered, constant in instance.constants:
                self.give(entered, instance, iteration + 1, [constant], constant is DEAD)
        source = self.sources[token_of(operation)]
        value, *_ = data_results(source)
        self.deliver(value, datum, instance, iteration + 1)
        if (control := control_result(source)) is not None:
            self.deliver(control, LIVE, instance, iteration + 1)

    def end_frames(self, instance: FrameInstance) -> None:
        """End a frame that has no work left and that all its Enters have reached, and deliver its dead Exits."""
        while not instance.has_ended and instance.unfinished == 0 and instance.parent is not None:
            if len(instance.entered) < self.enters[instance.frame]:
                return
            instance.has_ended = True
            outer, iteration = instance.parent
            last = len(instance.values) - 1
            for operation in self.block.operations:
                if (isinstance(operation.op, Exit) and self.frames.at[operation] is instance.frame
                        and operation not in instance.left and (operation, last) in instance.started):
                    self.give(operation, outer, iteration, [DEAD], True)
            outer.unfinished -= 1
            instance = outer

    # ---- Send and Recv -----------------------------------------------------------------------------------------------
    def key(self, operation: Operation, instance: FrameInstance, iteration: int) -> tuple[Any, ...]:
        """Return the key of a tensor in transit: from the Send, and from frame and iteration."""
        from ..tf.interpret import channel
        inner = wrapped(operation)
        assert inner is not None
        return (*channel(inner), *path_of(instance, iteration))

    def exchange(self, operation: Operation, instance: FrameInstance, iteration: int, is_dead: bool) -> None:
        """Run a Send or Recv, dead or live: a dead value is sent, and received."""
        table, key = self.environment.rendezvous, self.key(operation, instance, iteration)
        if is_receive(operation):
            datum = DEAD if is_dead else table[key]
            table.pop(key)
            self.give(operation, instance, iteration, [datum] * len(data_results(operation)), datum is DEAD)
            return
        inner = wrapped(operation)
        assert inner is not None and is_tensorflow(inner)
        sent = self.seen(inner.operands[0], instance.values[iteration])
        table[key] = DEAD if is_dead else sent
        self.give(operation, instance, iteration, [], is_dead)

    # ---- the end -----------------------------------------------------------------------------------------------------
    def results(self) -> list[Datum]:
        """Return the fetched values. Raise a Problem if one is dead, or was never computed."""
        values, (data, control) = self.root.values[0], fetched(self.graph)
        found = []
        for value in (*data, *control):
            datum = self.seen(value, values)
            if datum is None:
                raise self.stuck(value)
            if datum is DEAD and value in data:
                raise Problem(f"%{value.name} is fetched, but it is dead: no live value reaches it",
                              self.block.terminator_position or value.position, kind="dead")
            found.append(datum)
        return found[:len(data)]

    def stuck(self, value: Value) -> Problem:
        """Return the Problem of a graph in which nothing is ready: it names a waiting operation and its missing input."""
        if self.waiting:
            operation = self.waiting[0][0]
            inner = wrapped(operation)
            name = self.key(*self.waiting[0])[0]
            return Problem(f"a Recv waits for {name!r}, which nothing sends", operation.position,
                           kind="deadlock").of(inner.op.spelling if inner else "")  # type: ignore[attr-defined]
        for operation, needed in self.waits():
            return Problem(f"%{value.name} is fetched, but never computed: {operation.op.name} waits for %{needed.name}",
                           operation.position, kind="deadlock")
        return Problem(f"%{value.name} is fetched, but never computed", value.position, kind="deadlock")

    def waits(self) -> Iterator[tuple[Operation, Value]]:
        """Yield nodes that some but not all inputs have reached, each with a missing input."""
        instances = [self.root, *self.children.values()]
        for instance in instances:
            for iteration, values in enumerate(instance.values):
                for operation, inputs in self.frames.inputs.items():
                    missing = [v for v in inputs if v not in values]
                    if missing and len(missing) < len(inputs) and (operation, iteration) not in instance.started:
                        yield operation, missing[0]


def run_of(block: Block) -> Block:
    """Return the part of a graph that runs: the operations that its fetches need, and its Sends to other graphs."""
    received = messages(block.operations, RECEIVE)
    sends = [o for name, islands in messages(block.operations, SEND).items() if name not in received for o in islands]
    kept = reached(block.operations, (*block.yields, *(v for o in sends for v in o.results)))
    return replace(block, operations=tuple(o for o in block.operations if o in kept))


def path_of(instance: FrameInstance, iteration: int) -> tuple[Any, ...]:
    """Return the names of the frames around a node, with their iterations."""
    if instance.parent is None:
        return ()
    return (*path_of(*instance.parent), instance.frame.name, iteration)


def run_graph(environment: Environment, graph: Operation, scope: Scope) -> Sequence[Datum]:
    """Return the fetched values of a graph."""
    return run_together(environment, [(graph, scope)])[0]


def run_together(environment: Environment, graphs: Sequence[tuple[Operation, Scope]]) -> list[Sequence[Datum]]:
    """Return the fetched values of several graphs that run concurrently, one node of each in turn."""
    executions = [GraphExecution(environment, graph, scope) for graph, scope in graphs]
    while any([e.step() for e in executions]):
        pass
    return [e.results() for e in executions]
