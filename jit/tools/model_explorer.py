"""Node data for Google's Model Explorer: numbers of a compiled function, at the operators of the file that it shows.

Model Explorer shows a `.tflite` by its subgraphs, and a `.tosa` by its regions, with Arm's adapter. Nodes have the names that
these use: an operator's number, after the region's name in a `.tosa`. A kernel computes several operators; its numbers are
shown at the operator whose result it stores, and the others have none. Kernels that match no operator of the file are omitted.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...lowering.graph.file_position import FilePosition
from ...runtime.errors import Position

if TYPE_CHECKING:
    from ..stage_data import LoweredData
    from .profile import Profile

Node = tuple[str, str]
"""A graph, and a node of it, by their names in Model Explorer."""
Value = tuple[Position | None, float]
"""A position in the model, and a number."""

REGION = re.compile(r"region (.*)", re.DOTALL)
OPERATOR = re.compile(r"operator (\d+) ")
SIGNATURE = re.compile(r"signature (.*)", re.DOTALL)
SUBGRAPH = re.compile(r"subgraph \d+ (.*)", re.DOTALL)

GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#ef6548"}]
"""The least number is white, the largest red."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of each kernel. `combine` merges the numbers of several kernels at an operator, and of several steps of one
    kernel."""
    name: str
    values: Sequence[Value]
    combine: Callable[[float, float], float] = field(default=lambda a, b: a + b)


@dataclass(frozen=True, slots=True)
class ShownFile:
    """The file that Model Explorer shows: `signatures` maps the signatures of a `.tflite` to the subgraphs' names."""
    signatures: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: bytes) -> ShownFile:
        """Return the file with these bytes."""
        from ...lowering.tflite.decode import decode
        from ...lowering.tflite.schema import IDENTIFIER
        if data[4:8] != IDENTIFIER:
            return cls()
        model = decode(data)
        return cls({s.key: model.subgraphs[s.subgraph].name for s in model.signatures})

    def node(self, position: Position | None) -> Node | None:
        """Return the node of an operator; None for a position that is not an operator's."""
        if not isinstance(position, FilePosition) or len(position.path) < 2:
            return None
        number = OPERATOR.match(position.path[-1])
        if number is None:
            return None
        if region := REGION.fullmatch(position.path[0]):
            return region[1], f"{region[1]}/op{number[1]}"
        graphs = [found for part in position.path if (found := self.subgraph(part)) is not None]
        return (graphs[-1], number[1]) if graphs else None

    def subgraph(self, part: str) -> str | None:
        """Return the subgraph that a part of a path names."""
        if signature := SIGNATURE.fullmatch(part):
            return self.signatures.get(signature[1])
        found = SUBGRAPH.fullmatch(part)
        return found[1] if found else None

    def data(self, measure: Measure) -> dict[str, Any]:
        """Return the node data of a measure in Model Explorer's format: by graph, by node."""
        graphs: dict[str, dict[str, Any]] = {}
        for position, value in measure.values:
            node = self.node(position)
            if node is not None:
                results = graphs.setdefault(node[0], {"name": measure.name, "results": {}, "gradient": GRADIENT})["results"]
                before = results.get(node[1])
                results[node[1]] = {"value": measure.combine(before["value"], value) if before else value}
        return graphs


def static_measures(lowered: LoweredData) -> tuple[Measure, ...]:
    """Return the measures known before a run: the bytes that kernels write, the bytes live in the arena while they run (the
    maximum over several steps), and the elements and terms of sums that they compute."""
    from ...lowering.native.process.load import terms_of
    kernels = lowered.kernels.kernels
    return (Measure("bytes", [(k.position, k.out.nbytes) for k in kernels]),
            Measure("live_bytes", list(live_values(lowered)), max),
            Measure("terms", [(k.position, terms_of(k)) for k in kernels]))


def live_values(lowered: LoweredData) -> Iterator[Value]:
    """Yield the bytes that are live at each step, at the position of its kernel."""
    from .report.build_report import planned_lines, ticks
    from .report.live import live_bytes
    program, timeline = lowered.program, tuple(ticks(lowered.program.steps))
    buffers = [b for b in planned_lines(program, lowered.plan, timeline) if b.kind != "constant"]
    for step, nbytes in zip(timeline, live_bytes(buffers, len(timeline))):
        if step.kernel is not None:
            yield lowered.kernels.kernels[step.kernel].position, nbytes


def measured(profile: Profile) -> Measure:
    """Return the minimum microseconds of a call that kernels take."""
    return Measure("microseconds", [(k.position, round(k.least / 1e3, 6)) for k in profile.kernels])

