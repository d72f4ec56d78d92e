"""Frames: the loop that each value of an executor graph belongs to.

An Enter goes into a frame, an Exit comes out of one, a Source is in the frame of its Sink, every other operation is in that of
its inputs. Values from outside the graph are in every frame. Each operation is settled once, when the frame of its first input
is known, so the time is linear in the graph; `verify` checks that all its inputs agree.
"""
from __future__ import annotations

from collections import deque
from dataclasses import field

from ....runtime.records import dataclass
from ...graph.graph import Block, Operation, Value, captures
from .operators import Enter, Exit, NextIterationSink, NextIterationSource, token_of
from .types import TOKEN


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A loop: `name` is that of its Enters, `parent` the frame around it (None for the root)."""
    name: str = ""
    parent: Frame | None = None

    def __str__(self) -> str:
        return "the root frame" if self.parent is None else f'frame "{self.name}"'


def inputs_of(operation: Operation) -> tuple[Value, ...]:
    """Return the values that an operation of a graph waits for: its operands, and outer values used in its regions; no
    tokens."""
    found = operation.operands + (captures(operation) if operation.regions else ())
    return tuple(v for v in found if v.type != TOKEN)


@dataclass()
class Frames:
    """The frames of one graph's body; `of` maps all values that its operations define to frames, and `at` maps operations to
    the frames that they run in (for an Enter: that of its inputs)."""
    block: Block
    root: Frame = field(default_factory=Frame)
    of: dict[Value, Frame] = field(default_factory=dict)
    at: dict[Operation, Frame] = field(default_factory=dict)
    children: dict[tuple[Frame, str], Frame] = field(default_factory=dict)
    inputs: dict[Operation, tuple[Value, ...]] = field(default_factory=dict)
    """Inputs that each operation waits for, as far as they are defined in the graph."""

    def __post_init__(self) -> None:
        own = {v for o in self.block.operations for v in o.results}
        self.inputs = {o: tuple(v for v in inputs_of(o) if v in own) for o in self.block.operations}
        self.users: dict[Value, list[Operation]] = {}
        self.sources: dict[Value, Operation] = {}
        for operation, inputs in self.inputs.items():
            for value in inputs:
                self.users.setdefault(value, []).append(operation)
            if isinstance(operation.op, NextIterationSource) and (token := token_of(operation)):
                self.sources[token] = operation
        self.settle_all()

    def settle_all(self) -> None:
        self.settle((o, self.root) for o, inputs in self.inputs.items()
                    if not inputs and not isinstance(o.op, NextIterationSource))
        for operation in self.block.operations:  # loops that nothing enters
            if operation not in self.at:
                self.settle([(operation, self.root)])

    def settle(self, found: object) -> None:
        """Assign frames to operations, and to the operations that use their results."""
        ready: deque[tuple[Operation, Frame]] = deque(found)  # type: ignore[call-overload]
        while ready:
            operation, frame = ready.popleft()
            if operation in self.at:
                continue
            self.at[operation] = frame
            inside = self.result_frame(operation, frame)
            for value in operation.results:
                self.of[value] = inside
                ready.extend((user, inside) for user in self.users.get(value, ()))
            token = token_of(operation) if isinstance(operation.op, NextIterationSink) else None
            if token is not None and token in self.sources:
                ready.append((self.sources[token], frame))

    def result_frame(self, operation: Operation, frame: Frame) -> Frame:
        match operation.op:
            case Enter(frame_name=name):
                return self.children.setdefault((frame, name), Frame(name, frame))
            case Exit():
                return frame.parent or frame
            case _:
                return frame
