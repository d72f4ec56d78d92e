"""Makers of the graphs of a model's entries: from its module unchanged, or from the translation of another dialect than TOSA
for given input shapes. `entry` calls them; they can be pickled.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ...runtime.errors import Problem
from ...runtime.later import Later
from ...runtime.records import dataclass
from ..cache.models import Outline
from .dynamic_shapes import Shape, with_shapes

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.graph.types import Array, Type
    from ...lowering.rewrite.tensorflow import Bindings
    from ...lowering.rewrite.translation_record import RecordedTranslation
    from ...runtime.limits import Limits
    from ..source import ImportedSource, ObservedRun
    from ..stages import Traced
    from ..tracing.pytree import Structure

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Inputs with open extents, and the shapes that a call gives them."""
Graph = Callable[[Shapes], "Traced"]
"""Makes the graph of an entry for inputs of these shapes; without shapes, the graph of the model itself."""
Call: TypeAlias = "Callable[[Sequence[Array]], Sequence[Array]]"
EntryOf = Callable[["Module", str], Callable[..., Any]]
"""Makes the callable entry of a graph of known shapes."""


def key_of_shapes(shapes: Mapping[str, Shape]) -> Shapes:
    return tuple(sorted((name, tuple(map(int, shape))) for name, shape in shapes.items()))


class CallsByValue(Protocol):
    """Calls whose code depends on values of inputs, and is compiled for each set of them."""
    def __call__(self, inputs: tuple[Any, ...], named: Mapping[str, Any], **options: Any) -> Any: ...


class NeedsValues(Problem):
    """A Problem for a graph that cannot be made from shapes alone; `calls` makes one for the values of a call."""

    def __init__(self, problem: Problem, calls: CallsByValue) -> None:
        super().__init__(problem.message, problem.position, kind=problem.kind, help=problem.help, labels=problem.labels)
        self.inputs, self.calls = problem.inputs, calls


class ForeignDialect(Protocol):
    """A module `graph_entries`: the interface to models in another dialect than TOSA."""
    def outlines(self, module: Module, bindings: Bindings | None) -> tuple[Outline, ...]: ...
    def graph_of(self, module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None) -> Module: ...
    @property
    def KIND(self) -> str: ...
    def calls_of(self, module: Module, name: str, bindings: Bindings | None) -> ObservedRun: ...
    def recorded(self, module: Module, name: str, types: Sequence[Type], bindings: Bindings | None) -> RecordedTranslation: ...
    def carried(self, module: Module, name: str, call: Call) -> Call: ...
    def calls_by_value(self, module: Module, name: str, entry_of: EntryOf) -> CallsByValue | None: ...


def dialect_of(module: Module) -> ForeignDialect | None:
    """Return the dialect of a module; None for TOSA."""
    from ...lowering.dialects.onnx.node import is_onnx
    from .onnx import graph_entries as onnx
    from .tensorflow import graph_entries as tensorflow
    return onnx if is_onnx(module) else tensorflow if tensorflow.is_tensorflow(module) else None


@dataclass(frozen=True, slots=True, eq=False)
class GraphOf:
    """Makes the graphs of an entry of a module. `results` is the nest of its results, `imported` the source from which it was
    imported."""
    module: Later[Module]
    name: str
    entry_of: EntryOf
    bindings: Bindings | None = None
    results: Structure | None = None
    imported: ImportedSource | None = None

    def __call__(self, shapes: Shapes) -> Traced:
        from ...lowering.graph.check_limits import check_limits
        from ..stages import Traced
        whole, name = self.module(), self.name
        whole.check_absent(name)
        foreign = dialect_of(whole)
        if foreign is not None:
            try:
                graph = foreign.graph_of(whole, name, dict(shapes), self.bindings)
            except Problem as problem:
                calls = foreign.calls_by_value(whole, name, self.entry_of)
                raise problem if calls is None else NeedsValues(problem, calls) from None
            check_limits(graph)
            return Traced(graph, name, self.results, ForeignCalls(whole, name, self.bindings), imported=self.imported)
        return Traced(with_shapes(whole, whole.function(name), dict(shapes)) if shapes else whole, name, imported=self.imported)


@dataclass(frozen=True, slots=True, eq=False)
class LimitedGraph:
    """Makes the graphs of an entry within limits."""
    graph: Graph
    limits: Limits

    def __call__(self, shapes: Shapes) -> Traced:
        with self.limits:
            return self.graph(shapes)


@dataclass(frozen=True, slots=True, eq=False)
class KnownGraph:
    """The graph of an entry for known shapes, independent of its origin."""
    traced: Traced
    shapes: Shapes

    def __call__(self, shapes: Shapes) -> Traced:
        if shapes != self.shapes:
            raise Problem(f"{self.traced.name} was pickled for other shapes", kind="argument",
                          help="pickle one for each set of shapes, where the model was made")
        return self.traced


@dataclass(frozen=True, slots=True, eq=False)
class ForeignCalls:
    """An entry in its own dialect: starts calls in that dialect's interpreter, and translates the entry once more with a
    record."""
    module: Module
    name: str
    bindings: Bindings | None

    @property
    def dialect(self) -> ForeignDialect:
        foreign = dialect_of(self.module)
        assert foreign is not None
        return foreign

    @property
    def kind(self) -> str:
        return self.dialect.KIND

    def __call__(self) -> ObservedRun:
        return self.dialect.calls_of(self.module, self.name, self.bindings)

    def recorded(self, types: Sequence[Type]) -> RecordedTranslation:
        return self.dialect.recorded(self.module, self.name, types, self.bindings)

    def carried(self, call: Call) -> Call:
        return self.dialect.carried(self.module, self.name, call)
