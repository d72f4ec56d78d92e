"""The source of an imported model, for `check`: its kind, and the systems that can run it, best first. Importers create it; no
other system is imported before a check needs it.
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
    """Successive calls, on one state, of the function from which a graph was made."""

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]: ...
    @property
    def variables(self) -> Mapping[str, Array | None]: ...


class ObservedRun(SourceRun, Protocol):
    """Calls in this package's own interpreter of a dialect, which can be observed."""

    def observed_by(self, came: Callable[[Operation, Sequence[Any]], None],
                    written: Callable[[Operation, str, Array], None]) -> None:
        """Call `came` after each operation, with its results (None: dead), and `written` after each write to a variable."""


class Source(Protocol):
    """The source of a graph in a dialect that this package interprets (a graph of TensorFlow, of ONNX): starts runs of it, with
    the initial values of its variables, and records the translation of its operations."""

    def __call__(self) -> ObservedRun: ...
    @property
    def kind(self) -> str: ...

    def recorded(self, types: Sequence[Type]) -> RecordedTranslation:
        """Translate the graph again for inputs of these types, before anything is folded, and record the translation of each
        operation."""

    def carried(self, call: Callable[[Sequence[Array]], Sequence[Array]]) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """Return calls of the entry, given the call of the recorded function."""


@dataclass(slots=True)
class StatelessRun:
    """Calls of a function without variables."""
    call: Callable[[Sequence[Array]], Sequence[Array]]
    variables: Mapping[str, Array | None] = field(default_factory=dict)

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        return self.call(arrays)


@dataclass(frozen=True, slots=True)
class SourceEvaluator:
    """A system that runs a source. `package` is the package that it needs, `install` its name in pip. `start` begins a run of
    the entry of that name, with the initial state of the source; it raises if the system cannot run the source. `caveat` names
    known errors of the system itself."""
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
    """The comparison of a source's operators one by one: the number that were compared, the first that differs, in words, those
    that had no reference, by name, and the reason if none were compared."""
    compared: int
    first: str | None = None
    absent: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


Locate: TypeAlias = "Callable[[str, Sequence[Array]], OperatorVerdict]"
"""Compares the operators of an entry with the source's own on these inputs."""


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """Source of a model: `kind` in words, and its evaluators, best first."""
    kind: str
    evaluators: tuple[SourceEvaluator, ...]
    locate: Locate | None = None
    absent: str = ""
    """Why there are no evaluators, if missing packages are not the reason."""
    is_located_always: bool = True
    """True if operators are compared even if the whole agrees; False if another stage of `check` has compared them."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the source: the file, or the other system's objects, stay in this process."""
        return ImportedSource, (self.kind, (), None, self.absent or f"{self.kind} was pickled without its source: check it in "
                                "the process that has loaded it")


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
