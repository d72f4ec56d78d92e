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
    from ..lowering.graph.graph import Operation
    from ..lowering.graph.types import Array, Type
    from ..lowering.rewrite.translation_record import RecordedTranslation


class SourceRun(Protocol):
    """One after the other, calls of the function that a graph was made from, on one state."""

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]: ...
    @property
    def variables(self) -> Mapping[str, Array | None]: ...


class ObservedRun(SourceRun, Protocol):
    """Calls in this package's own interpreter of a dialect, which can be looked at."""

    def observed_by(self, came: Callable[[Operation, Sequence[Any]], None],
                    written: Callable[[Operation, str, Array], None]) -> None:
        """Call these after each operation, with its results (None: dead), and after each write to a variable."""


class Source(Protocol):
    """What a graph was made from, in a dialect that this package interprets (a graph of TensorFlow, of ONNX): begins runs of
    it, with its variables as they are at first, and says what its operations have become."""

    def __call__(self) -> ObservedRun: ...
    @property
    def kind(self) -> str: ...

    def recorded(self, types: Sequence[Type]) -> RecordedTranslation:
        """The graph for inputs of these types once more, before anything is folded, with what became of each operation."""

    def carried(self, call: Callable[[Sequence[Array]], Sequence[Array]]) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """Calls of the entry, by what calls the recorded function."""


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


@dataclass(frozen=True, slots=True)
class OperatorVerdict:
    """The operators of a source one by one: how many were compared, the first that differs, in words, those that nothing could
    be compared with, by name, and why none were, where that is so."""
    compared: int
    first: str | None = None
    absent: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


Locate: TypeAlias = "Callable[[str, Sequence[Array]], OperatorVerdict]"
"""Compares the operators of an entry with the source's own on these inputs."""


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """What a model was made from: `kind` in words, and its evaluators, best first."""
    kind: str
    evaluators: tuple[SourceEvaluator, ...]
    locate: Locate | None = None
    absent: str = ""
    """Why there are no evaluators, where that is no fault of what is installed."""
    is_located_always: bool = True
    """True if operators are compared where the whole agrees, too: not where another stage of `check` has done so."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has graphs alone: the file, or what another system holds, stays where it is."""
        return ImportedSource, (self.kind, (), None, self.absent or f"{self.kind} was pickled without its source: check it in "
                                "the process that has loaded it")


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
