"""Bindings of a subgraph's tensors at one run: values of the graph and variables, and the position of the run."""
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
"""Maximum depth of subgraphs that run each other."""


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The variable that a resource tensor refers to."""
    symbol: str


Bound: TypeAlias = Value | ResourceHandle


@dataclass(frozen=True, slots=True)
class SubgraphScope:
    """The context of a subgraph's run: its position, and the stack of subgraphs that run it."""
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
    """Return the name of a variable, prefixed by its container's name."""
    names = (str(operator.options["container"]), str(operator.options["shared_name"]))
    return "/".join(p for p in names if p) or "variable"


def check_handles(first: Sequence[Bound], second: Sequence[Bound]) -> None:
    """Raise a Problem unless each variable on one side is the same variable on the other."""
    for a, b in zip(first, second):
        if isinstance(a, ResourceHandle) != isinstance(b, ResourceHandle) or (isinstance(a, ResourceHandle) and a != b):
            raise Problem("which variable is meant is only known when running, which is not supported", kind="unsupported")
