"""The source of an imported model, as `check` needs it: what it is, and the systems that can run it, best first. A front door
makes one; nothing of another system is imported before a check asks for it.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..runtime.records import dataclass

if TYPE_CHECKING:
    from ..lowering.graph.types import Array


class SourceRun(Protocol):
    """One after the other, calls of the function that a graph was made from, on one state."""

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]: ...
    @property
    def variables(self) -> Mapping[str, Array | None]: ...


Source: TypeAlias = Callable[[], SourceRun]
"""Begins a run of what a graph was made from (a graph of TensorFlow), with its variables as they are at first."""


@dataclass(slots=True)
class StatelessRun:
    """Calls of a function without variables."""
    call: Callable[[Sequence[Array]], Sequence[Array]]
    variables: Mapping[str, Array | None] = field(default_factory=dict)

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        return self.call(arrays)


@dataclass(frozen=True, slots=True)
class SourceEvaluator:
    """A system that runs a source. `package` is the one that it needs, `install` what pip installs for it. `start` begins a run
    of the entry of that name, with the state that the source begins with; it raises where the system cannot run the source.
    `caveat` says where the system itself is known to be wrong."""
    name: str
    package: str
    install: str
    start: Callable[[str], SourceRun]
    caveat: str = ""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package.split(".")[0]) is not None and find_spec(self.package) is not None

    def __str__(self) -> str:
        from importlib.metadata import PackageNotFoundError, version  # 28 ms that a start from the cache does not need
        try:
            return f"{self.name} {version(self.install)}"
        except PackageNotFoundError:
            return self.name


Locate: TypeAlias = "Callable[[str, Sequence[Array]], str | None]"
"""Finds the first operator of an entry that gives another result than the source's on these inputs, in words; None where that
cannot be found."""


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """What a model was made from: `kind` in words, and its evaluators, best first."""
    kind: str
    evaluators: tuple[SourceEvaluator, ...]
    locate: Locate | None = None
    absent: str = ""
    """Why there are no evaluators, where that is no fault of what is installed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has graphs alone: the file, or what another system holds, stays where it is."""
        return ImportedSource, (self.kind, (), None, self.absent or f"{self.kind} was pickled without its source: check it in "
                                "the process that has loaded it")


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
