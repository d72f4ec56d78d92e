"""What the tensors of a subgraph stand for where it is run: values of the graph, and variables; and where that is."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.file_position import FilePosition
from ..graph.graph import Value
from .records import OperatorRecord
from .splice_converted import place_of

LARGEST_DEPTH = 64
"""Subgraphs run each other no deeper than this."""


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """What a resource tensor stands for: a variable."""
    symbol: str


Bound: TypeAlias = Value | ResourceHandle


@dataclass(frozen=True, slots=True)
class SubgraphScope:
    """Where a subgraph is run: its place, and the subgraphs that run it."""
    position: FilePosition
    running: tuple[int, ...] = ()

    def inside(self, index: int, operator: OperatorRecord, callee: int, name: str) -> SubgraphScope:
        place = place_of(self.position, index, operator)
        if callee in self.running or len(self.running) >= LARGEST_DEPTH:
            raise Problem(f"subgraph {callee} runs itself, or subgraphs run each other deeper than {LARGEST_DEPTH}", place,
                          kind="unsupported")
        return SubgraphScope(place.inside(f"subgraph {callee} {name}".rstrip()), (*self.running, callee))


def tensors(values: Sequence[Bound]) -> list[Value]:
    return [v for v in values if isinstance(v, Value)]


def symbol_of(operator: OperatorRecord) -> str:
    """The name of a variable: its container's before its own."""
    names = (str(operator.options["container"]), str(operator.options["shared_name"]))
    return "/".join(p for p in names if p) or "variable"


def check_handles(first: Sequence[Bound], second: Sequence[Bound]) -> None:
    """What is a variable on one side is the same one on the other."""
    for a, b in zip(first, second):
        if isinstance(a, ResourceHandle) != isinstance(b, ResourceHandle) or (isinstance(a, ResourceHandle) and a != b):
            raise Problem("which variable is meant is only known when running, which is not supported", kind="unsupported")
