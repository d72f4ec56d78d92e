"""A model file as an object: its entry functions are attributes and items, to be traced, lowered, compiled, called.

Where the cache on disk knows the file (`cache.models`), it is not parsed before somebody asks for more than a call.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...runtime.errors import AttributeProblem, KeyProblem, Problem, printable
from ...runtime.garbage_collection import seldom_collecting
from ...runtime.later import Later, now
from ...runtime.limits import check_bytes, here
from ...runtime.public_names import closest, public, with_named
from ...runtime.records import dataclass
from ...runtime.variables import checked_context, process
from ..cache.models import CachedModel, Origin, Outline, file_key, known_data, known_file, remember_file
from ..cache.programs import CachedCompiler, CodeRequest
from ..calls import Numbers, Results, not_yet, through, until_quick
from ..compiled import GraphRecipe
from ..descriptors import Interface, TensorDescriptor
from ..given_options import given
from .dynamic_shapes import KEPT, Shape, is_dynamic, shapes_of, with_shapes
from .read import file_bytes, first_bytes, is_onnx, is_text, read_again, read_bytes, read_module

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.graph.types import Array
    from ...lowering.memory.planner import Memory
    from ...lowering.options import CompileOptions
    from ...lowering.rewrite.tensorflow import Bindings
    from ...lowering.target.target import Target
    from ...runtime.limits import Limits
    from ...runtime.variables import Context
    from ..aot import Artifact
    from ..compiled import Compiled
    from ..projects.recording import Calls
    from ..source import ImportedSource, SourceRun
    from ..stages import Lowered, Traced
    from ..tools.check.crosscheck import CrossCheck
    from ..tracing.pytree import Structure

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Inputs and their shapes, those that a call gives to inputs with open extents."""
Graph = Callable[[Shapes], "Traced"]
"""Makes the graph of an entry for inputs of these shapes; for none, as the model has it."""


class Entry:
    """An entry function of a model. The first call compiles it. Its variables belong to the model's context, or where that has
    none to the process; a call, and `compile`, may name another `context`, and then make nothing in the model's."""
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None,
                     num_threads: int | None = None, **named: Any) -> Results: ...
    else:
        __slots__ = ("__call__", "__dict__", "__weakref__")

    _limits: Limits | None = None
    """What reading and compiling it may take, each time."""

    def __init__(self, outline: Outline, graph: Graph, cached: CachedModel | None, shapes: Shapes = (),
                 traced: Later[Traced] | None = None, context: Context | None = None) -> None:
        self._outline, self._graph, self._cached, self._shapes = outline, graph, cached, shapes
        self._context = process if context is None else context
        self._traced = traced or Later(lambda: in_context(graph(shapes), context))
        self._compiled: Compiled[Lowered] | None = None
        self._elsewhere: Compiled[Lowered] | None = None
        """The code with the variables of another context, as long as only calls with one have been made."""
        self._by_value: dict[Shapes, CallsByValue] = {}
        """Calls with inputs of shapes for which there is no code that suits all values."""
        self._lock = threading.Lock()
        self._special: dict[Shapes, Entry] = {}
        self._tensors: Interface | None = None
        self.__call__ = until_quick(self, through(self, "_call"), through(self, "_quick"))  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        return self._outline.name

    @property
    def is_dynamic(self) -> bool:
        """Whether an input has extents that are not known."""
        return self._outline.is_dynamic

    @property
    def input_names(self) -> tuple[str, ...]:
        """What the inputs are called, in order."""
        return self._outline.inputs

    @property
    def inputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the inputs, in order: name, dtype, shape, strides, scale, zero point, axis; as strings, names and
        types."""
        return self.tensors.inputs

    @property
    def outputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the outputs, in order; as strings, types."""
        return self.tensors.outputs

    @property
    def variables(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the variables that it uses; as strings, names and types."""
        return self.tensors.variables

    @property
    def constants(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the constants that it has; as strings, names and types."""
        return self.tensors.constants

    @property
    def tensors(self) -> Interface:
        """All of these. The cache keeps them with the code: a later process needs no graph for them."""
        if self._tensors is None:
            kept = self._cached.recall_interface(self.name, self._shapes) if self._cached else None
            self._tensors = kept or self._traced().tensors
        return self._tensors

    def quantize(self, *inputs: Any, **named: Any) -> Numbers:
        """The stored arrays of float inputs: `real / scale + zero_point`, rounded to nearest, halves away from zero, and held
        within the range of the storage, as TensorFlow Lite's reference has it. One array, a tuple for several, a dict for one
        mapping by name. Inputs of floats pass as they are. A Problem where the model does not say what integers stand for."""
        return self.tensors.quantized(inputs, named)

    def dequantize(self, *outputs: Any) -> Numbers:
        """The real numbers of stored outputs: `scale * (stored - zero_point)` in float32. Takes arrays in order, what a call
        has returned, or one mapping by name."""
        return self.tensors.dequantized(outputs)

    def on_floats(self, *inputs: Any, context: Context | None = None, num_threads: int | None = None, **named: Any
                  ) -> Numbers:
        """A call with float arrays: quantized, called, dequantized."""
        stored = self.quantize(*inputs, **named)
        results = self(*(stored if isinstance(stored, tuple) else (stored,)), context=context, num_threads=num_threads)
        return self.dequantize(results)

    def __repr__(self) -> str:
        return f"<Entry {printable(self.name)}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"

    def trace(self) -> Traced:
        return self._traced()

    @public("lower")
    def lower(self, options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> Lowered:
        """Loops and a memory plan, as the `options` say. (`target` and `memory` are deprecated: they are options.)"""
        return self._traced().lower(given("lower", options, target=target, memory=memory))

    @public("compile")
    def compile(self, options: CompileOptions | None = None, context: Context | None = None, memory: Memory | None = None,
                *, target: Target | None = None) -> Compiled[Lowered]:
        """Machine code with its variables in `context`, or in the model's; kept for calls where neither options nor a context
        are given. (`target` and `memory` are deprecated: they are options.)"""
        options = given("compile", options, target=target, memory=memory)
        if options is not None or context is not None:
            return self._compile(CodeRequest(options), checked_context(context) or self._context)
        with self._lock:
            if self._compiled is None:
                here, self._elsewhere = self._elsewhere, None
                self._compiled = here.bind(self._context) if here else self._compile(CodeRequest(), self._context)
            return self._compiled

    def _code(self, context: Context | None) -> Compiled[Lowered]:
        """What a call with that context may call: of other contexts it makes no variable."""
        if self._compiled is not None or context is None or context is self._context:
            return self._compiled or self.compile()
        with self._lock:
            if self._compiled is None and self._elsewhere is None:
                self._elsewhere = self._compile(CodeRequest(), context)
            return self._compiled or self._elsewhere

    def _compile(self, request: CodeRequest, context: Context) -> Compiled[Lowered]:
        if self._limits is not None:
            with self._limits:
                return within_limits(self._traced().compile(request.options, context))
        if self._cached is None:
            return self._traced().compile(request.options, context)
        compiled = self._cached.compile(self.name, self._shapes, request, context, self._traced, compiler)
        compiled.executable.recipe = GraphRecipe(self._traced, request.options)
        return compiled

    def _call(self, *inputs: Any, out: Any = None, context: Context | None = None, num_threads: int | None = None,
              **named: Any) -> Any:
        """One array, or a tuple of several, for arrays in the order of `inputs`, by their names, or one mapping by name."""
        where = self._context if context is None else context
        if self.is_dynamic:
            inputs = (with_named(self.name, self._outline.inputs, inputs, named),) if named else inputs
            shapes = shapes_of(self.name, self._outline.inputs, inputs)
            key = key_of_shapes(shapes)
            if key not in self._by_value:
                try:
                    special = self.specialize(shapes)
                except NeedsValues as problem:
                    self._by_value[key] = problem.calls
                else:
                    return special(*inputs, out=out, context=context, num_threads=num_threads)
            return self._by_value[key](inputs, {}, out=out, context=where, num_threads=num_threads)
        if () not in self._by_value:
            try:
                code = self._code(checked_context(context))
            except NeedsValues as problem:
                self._by_value[()] = problem.calls
            else:
                return code(*inputs, out=out, context=where, num_threads=num_threads, **named)
        return self._by_value[()](inputs, named, out=out, context=where, num_threads=num_threads)

    def _quick(self) -> Callable[..., Any] | None:
        """What calls can do once it is compiled for those without a context."""
        return None if self.is_dynamic else not_yet if self._compiled is None else self._compiled.__call__

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the graph, and the name of the context; the receiving process has the code in its cache, or makes it."""
        context = None if self._context is process else self._context
        return Entry, (self._outline, self._portable_graph(), self._cached, self._shapes, None, context)

    def _portable_graph(self) -> GraphOf | KnownGraph:
        """What makes its graph, elsewhere, too."""
        made_by = self._graph.graph if isinstance(self._graph, LimitedGraph) else self._graph
        if isinstance(made_by, GraphOf | KnownGraph):
            return made_by
        if self.is_dynamic:
            raise Problem(f"{self.name} cannot be pickled with its open extents: what converts it for the shapes of each call "
                          "runs in this process alone", kind="argument", help="pickle what it is for known shapes: "
                          f"model.{self.name}.specialize({{\"{self._outline.inputs[0]}\": (...)}})")
        return KnownGraph(self._traced(), self._shapes)

    def __copy__(self) -> Entry:
        return self

    def __deepcopy__(self, memo: object) -> Entry:
        """Code is shared, as functions are; its variables are a context's."""
        return self

    def within(self, context: Context | None) -> Entry:
        """The entry with its variables in that context; None: as it is."""
        if checked_context(context) is None or context is self._context:
            return self
        return Entry(self._outline, self._graph, self._cached, self._shapes, None, context)._bounded(self._limits)

    def limited(self, limits: Limits | None) -> Entry:
        """The entry with its translation and each compile within limits, which the cache's knowledge of it does not pass by;
        None: as it is."""
        if limits is None:
            return self
        return Entry(self._outline, LimitedGraph(self._graph, limits), None, self._shapes, None, self._context)._bounded(limits)

    def _bounded(self, limits: Limits | None) -> Entry:
        self._limits = limits
        return self

    def specialize(self, shapes: Mapping[str, Shape]) -> Entry:
        """The entry for inputs of these shapes, by name: what a model with dynamic extents is compiled as. A call does it by
        itself; the last sets of shapes are kept."""
        key = key_of_shapes(shapes)
        with self._lock:
            if key not in self._special:
                special = self._specialized(key)
                if len(self._special) >= KEPT:
                    self._special.pop(next(iter(self._special)))
                self._special[key] = special
            return self._special[key]

    def _specialized(self, shapes: Shapes) -> Entry:
        """The graph is only rewritten at once where the cache has no code for these shapes: then they may be wrong."""
        name, all_shapes, graph = self.name, (*self._shapes, *shapes), self._graph
        is_known = self._cached is not None and self._cached.code_key(name, all_shapes, CodeRequest()) is not None
        static = self._outline._replace(is_dynamic=False)
        traced = None if is_known else now(in_context(graph(all_shapes), self._context))
        return Entry(static, graph, self._cached, all_shapes, traced, self._context)._bounded(self._limits)

    def show(self, stage: str = "graph", whole: bool = False, *, after: str | None = None,
             options: CompileOptions | None = None) -> str:
        """One stage as text, or what there is behind a pass, as `Traced.show` gives it."""
        return self._traced().show(stage, whole, after=after, options=options)

    def check(self, calls: Sequence[Sequence[Array]], options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> CrossCheck:
        """The compiled function against the reference interpreter, and what a model was imported from against that."""
        return self._traced().check(calls, given("check", options, target=target, memory=memory))


class CallsByValue(Protocol):
    """Calls whose code depends on values of inputs, and is made for those of each."""
    def __call__(self, inputs: tuple[Any, ...], named: Mapping[str, Any], **options: Any) -> Any: ...


class NeedsValues(Problem):
    """There is no graph for shapes alone; `calls` makes one for the values of a call."""

    def __init__(self, problem: Problem, calls: CallsByValue) -> None:
        super().__init__(problem.message, problem.position, kind=problem.kind, help=problem.help, labels=problem.labels)
        self.inputs, self.calls = problem.inputs, calls


def key_of_shapes(shapes: Mapping[str, Shape]) -> Shapes:
    return tuple(sorted((name, tuple(map(int, shape))) for name, shape in shapes.items()))


class Model:
    """The entry functions of a module. Called itself, it is its only entry, or `main`. The only entry may be called `main`,
    too, whatever its name is. Its variables belong to the process, or to the context that it was loaded with (`within`)."""
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None,
                     num_threads: int | None = None, **named: Any) -> Results: ...
    else:
        __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, module: Later[Module], outlines: Sequence[Outline], cached: CachedModel | None = None,
                 bindings: Bindings | None = None, imported: ImportedSource | None = None) -> None:
        self._module, self.imported = module, imported
        self.is_stand_in = False
        """Whether `module` is for being shown alone: entries that were made one by one have graphs of their own."""
        self.entries = {o.name: Entry(o, graph_of(module, o.name, bindings, imported=imported), cached) for o in outlines}
        self.__call__ = until_quick(self, through(self, "_call"), through(self, "_quick"))  # type: ignore[method-assign]

    @classmethod
    def of_entries(cls, entries: Mapping[str, Entry], module: Module) -> Model:
        """A model of entries that were made one by one; `module` is what it shows."""
        model = cls(now(module), ())
        model.entries, model.is_stand_in = dict(entries), True
        return model

    def within(self, context: Context | None) -> Model:
        """The model with the variables of all its entries in that context; None: as it is. Models whose variables have the same
        names share them in one context, and nothing in two."""
        if checked_context(context) is None:
            return self
        return self.with_entries({name: entry.within(context) for name, entry in self.entries.items()})

    def limited(self, limits: Limits | None) -> Model:
        """The model with its entries within limits; None: as it is."""
        if limits is None:
            return self
        return self.with_entries({name: entry.limited(limits) for name, entry in self.entries.items()})

    def with_entries(self, entries: Mapping[str, Entry]) -> Model:
        """The model with other entries."""
        model = Model(self._module, (), imported=self.imported)
        model.entries, model.is_stand_in = dict(entries), self.is_stand_in
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the graphs, and the names of contexts; the receiving process has code in its cache, or makes it."""
        return model_again, (self._module, dict(self.entries), self.imported)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        """Code is shared, as functions are; its variables are a context's."""
        return self

    @property
    def module(self) -> Module:
        """The graphs of all functions."""
        return self._module()

    def entry(self, name: str | None = None) -> Entry:
        """The entry of that name; the only one, whatever its name, and otherwise `main`, without one or as `main`."""
        if name in (None, "main") and len(self.entries) == 1:
            name = next(iter(self.entries))
        elif name is None and "main" in self.entries:
            name = "main"
        if name in self.entries:
            return self.entries[name]
        found = next((f for f in self.module.functions if f.name == name), None) if name else self.module.function()
        if found is not None and found.name in self.entries:
            return self.entries[found.name]
        if found is not None:
            raise KeyProblem(f"{found.name} is private, it cannot be called from outside", found.position, kind="argument",
                             help=f"the entries are {', '.join(self.entries) or 'none'}")
        raise no_entry(KeyProblem, str(name), self.entries)

    def __getitem__(self, name: str) -> Entry:
        return self.entry(name)

    def __getattr__(self, name: str) -> Entry:
        entries: dict[str, Entry] = self.__dict__.get("entries", {})
        if name == "main" and len(entries) == 1:
            return next(iter(entries.values()))
        if name not in entries:
            raise no_entry(AttributeProblem, name, entries)
        return entries[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.entries})

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    def _call(self, *inputs: Any, out: Any = None, context: Context | None = None, num_threads: int | None = None,
              **named: Any) -> Any:
        """A call of the only entry, or of `main`."""
        return self.entry()(*inputs, out=out, context=context, num_threads=num_threads, **named)

    def _quick(self) -> Callable[..., Any] | None:
        """What calls can do once the entry is compiled."""
        return self.entry()._quick()

    @public("save")
    def save(self, directory: str | os.PathLike[str], name: str, options: CompileOptions | None = None,
             memory: Memory | None = None, *, self_contained: bool = False, library: bool = False, main: bool = False,
             namespace: str | None = None, state: str = "own", emit: str | None = None, pool_form: str = "binary",
             project: str | None = None, calls: Calls | Mapping[str, Calls] | None = None, debug: bool = False,
             target: Target | None = None) -> Artifact:
        """Write all entry functions as one object with its C header, as `Lowered.save` does for one; with `emit` "c" as C
        source, for any processor unless the options name one; with a `project` as a folder for a build system, whose example
        makes `calls` of the only entry, or of each by its name."""
        from ...lowering.options import for_object
        from ..aot import ArtifactForm
        from ..projects.save_project import emitted, save
        options = given("save", options, target=target, memory=memory)
        form = ArtifactForm(self_contained, library, main, namespace, state,
                            emitted(emit, project, options.target if options else None), pool_form, debug)
        options = for_object(options, form.emit)
        lowered = [entry.lower(options) for entry in self]
        return save(lowered, directory, name, form, project, calls)

    def check(self, calls: Sequence[Sequence[Array]], options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> CrossCheck:
        """`check` of the only entry, or of `main`."""
        return self.entry().check(calls, given("check", options, target=target, memory=memory))

    def show(self, whole: bool = False) -> str:
        """The module as MLIR text, long constants elided unless `whole`."""
        from ...lowering.stage_text import graph_text
        return graph_text(self.module, whole)

    def __str__(self) -> str:
        return self.show()

    def __repr__(self) -> str:
        return printable(f"<Model with {', '.join(self.entries) or 'no entries'}>")


def model_again(module: Later[Module], entries: Mapping[str, Entry], imported: ImportedSource | None) -> Model:
    """What a pickle of a model has."""
    return Model(module, (), imported=imported).with_entries(entries)


def no_entry(raised: type[Problem], name: str, entries: Iterable[str]) -> Problem:
    """The Problem for an entry that a model does not have."""
    meant = None if name.startswith("_") else closest(name, entries)
    return raised(f"the model has no entry {name}; it has {', '.join(entries) or 'none'}", kind="argument",
                  help=f"did you mean {meant}?" if meant else None)


def within_limits(compiled: Compiled[Lowered]) -> Compiled[Lowered]:
    """Code whose arena is within the limits, wherever it comes from."""
    check_bytes(compiled.executable.arena_nbytes, "the arena has")
    return compiled


def compiler() -> CachedCompiler:
    """What compiles, imported only where the cache does not have the code."""
    from ..stages import COMPILER
    return COMPILER


def in_context(traced: Traced, context: Context | None) -> Traced:
    """The graph with its variables in that context, where nobody says otherwise."""
    from dataclasses import replace
    return replace(traced, context=context)


class ForeignDialect(Protocol):
    """A module of `graph_entries`: how modules of a dialect that is not TOSA's are models."""
    def outlines(self, module: Module, bindings: Bindings | None) -> tuple[Outline, ...]: ...
    def graph_of(self, module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None) -> Module: ...
    def calls_of(self, module: Module, name: str, bindings: Bindings | None) -> SourceRun: ...
    def calls_by_value(self, module: Module, name: str, entry_of: Callable[[Module, str], Entry]) -> CallsByValue | None: ...


def dialect_of(module: Module) -> ForeignDialect | None:
    """The dialect that a module is of; None for TOSA."""
    from ...lowering.dialects.onnx.node import is_onnx
    from .onnx import graph_entries as onnx
    from .tensorflow import graph_entries as tensorflow
    return onnx if is_onnx(module) else tensorflow if tensorflow.is_tensorflow(module) else None


def of_graph(graph: Module, name: str) -> Entry:
    """The entry that a graph of known shapes is."""
    from ..stages import Traced
    outline = Outline(name, False, tuple(v.name for v in graph.function(name).arguments))
    return Entry(outline, lambda shapes: Traced(graph, name), None)


def graph_of(module: Later[Module], name: str, bindings: Bindings | None, results: Structure | None = None,
             imported: ImportedSource | None = None) -> Graph:
    """What makes the graphs of an entry; `results` is the nest that it gives its results in, `imported` what it was made
    from."""
    return GraphOf(module, name, bindings, results, imported)


@dataclass(frozen=True, slots=True, eq=False)
class GraphOf:
    """Makes the graphs of an entry of a module (`graph_of`)."""
    module: Later[Module]
    name: str
    bindings: Bindings | None
    results: Structure | None
    imported: ImportedSource | None

    def __call__(self, shapes: Shapes) -> Traced:
        from ...lowering.graph.check_limits import check_limits
        from ..stages import Traced
        whole, name = self.module(), self.name
        foreign = dialect_of(whole)
        if foreign is not None:
            try:
                graph = foreign.graph_of(whole, name, dict(shapes), self.bindings)
            except Problem as problem:
                calls = foreign.calls_by_value(whole, name, of_graph)
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
    """The graph of an entry for known shapes, whatever made it."""
    traced: Traced
    shapes: Shapes

    def __call__(self, shapes: Shapes) -> Traced:
        if shapes != self.shapes:
            raise Problem(f"{self.traced.name} was pickled for other shapes", kind="argument",
                          help="pickle one for each set of shapes, where the model was made")
        return self.traced


@dataclass(frozen=True, slots=True, eq=False)
class ForeignCalls:
    """Begins calls of an entry in the interpreter of its own dialect."""
    module: Module
    name: str
    bindings: Bindings | None

    def __call__(self) -> SourceRun:
        foreign = dialect_of(self.module)
        assert foreign is not None
        return foreign.calls_of(self.module, self.name, self.bindings)


def load_model(source: Any, name: str | None = None, bindings: Bindings | None = None) -> Model:
    """Read a model from a path, an open binary file, bytes, or MLIR text; verified."""
    if isinstance(source, str | os.PathLike) and not is_text(source) and bindings is None:
        return load_file(source, name)
    data, shown = (source, "<text>") if is_text(source) else read_bytes(source)
    known = known_data(data) if bindings is None and here.scope is None else None
    return model_of(lambda: read_verified(data, name or shown), known.origin if known else None, bindings,
                    source_of(data[:8], lambda: data))


def at_level(model: Model, level: str) -> Model:
    """The model, if it is within a level of TOSA; of TensorFlow's graphs what they become is."""
    if level == "none":
        return model
    from ...lowering.graph.levels import check_level
    check_level(model.module, level)
    if dialect_of(model.module) is not None:
        for entry in model:
            check_level(entry.trace().module, level)
    return model


def load_tflite(source: Any, name: str | None = None) -> Model:
    """`load_model` of what has to be a .tflite: a path, an open binary file, or bytes."""
    if isinstance(source, str | os.PathLike) and os.path.isfile(source):  # others can be read once
        head, shown = first_bytes(source, 8), str(source)
    else:
        source, shown = read_bytes(source)
        head = source[:8]
    if head[4:] != b"TFL3":
        raise Problem(f"{name or shown} is no .tflite file: its bytes from 4 on are not TFL3", kind="file",
                      help="tosaic.load takes MLIR text and .tosa files, too")
    return load_model(source, name or shown)


def known_model(path: str | os.PathLike[str], name: str | None) -> Model | None:
    """The model of a file that the cache knows by what the file system says of it; it is not read."""
    if here.scope is not None:  # what the cache knows was made without these limits
        return None
    key, place, shown = file_key(os.fspath(path)), os.path.abspath(path), name or str(path)
    known = known_file(key)
    cached = known.origin.recall() if known and known.origin else None
    if known is None or cached is None:
        return None
    again = Later(lambda: read_again(place, known.sha256))
    return Model(Later(lambda: read_verified(again(), shown, Path(place).parent)), cached.outlines, cached,
                 imported=source_of(first_bytes(path, 8), again, Path(place)))


def load_file(path: str | os.PathLike[str], name: str | None) -> Model:
    """Read a model from a file, or find it in the cache by what the file system says of it."""
    found = known_model(path, name)
    if found is not None:
        return found
    key, place, shown = file_key(os.fspath(path)), os.path.abspath(path), name or str(path)
    with suppress(OSError):  # who reads it says what is wrong
        check_bytes(os.stat(path).st_size, f"{shown} has")
    data = file_bytes(path)
    held = known_data(data) if here.scope is None else None
    if held:
        remember_file(place, key, held)
    return model_of(lambda: read_verified(data, shown, Path(place).parent), held.origin if held else None,
                    imported=source_of(data[:8], lambda: data, Path(place)))


def source_of(head: str | bytes | memoryview, data: Callable[[], Any], path: Path | None = None) -> ImportedSource | None:
    """What a file stands for in another system, by its first eight bytes: a .tflite, whose bytes `data` gives, or an ONNX
    model, which may be at `path`."""
    if is_onnx(head):
        from .onnx.first_difference import first_node
        from .onnx.run_onnx import onnx_source
        return onnx_source(path or data, lambda entry, arrays: first_node(bytes(data()), arrays, graph_with_shapes))
    if head[4:8] != b"TFL3":
        return None
    from .tflite.run_tflite import tflite_source
    return tflite_source(data)


def model_of(read: Callable[[], Module], origin: Origin | None, bindings: Bindings | None = None,
             imported: ImportedSource | None = None) -> Model:
    """The model that `read` reads: only when it must, where the cache knows it."""
    cached = origin.recall() if origin else None
    if cached is not None:
        return Model(Later(read), cached.outlines, cached, imported=imported)
    module = read()
    outlines = outlines_of(module, bindings)
    return Model(now(module), outlines, CachedModel(origin, outlines) if origin else None, bindings, imported)


def outlines_of(module: Module, bindings: Bindings | None) -> tuple[Outline, ...]:
    """The entry functions of a module."""
    foreign = dialect_of(module)
    if foreign is not None:
        return foreign.outlines(module, bindings)
    return tuple(Outline(f.name, is_dynamic(f), tuple(v.name for v in f.arguments))
                 for f in module.functions if not f.is_private)


def graph_with_shapes(data: bytes, shapes: Mapping[str, Shape]) -> Module:
    """The graph of a model's bytes for inputs of these shapes."""
    return load_model(data).entry().specialize(shapes).trace().module


def read_verified(data: str | bytes | memoryview, name: str, folder: Path | None = None) -> Module:
    from ...lowering.graph.check_limits import check_limits
    from ...lowering.rewrite.infer_shapes import verified
    check_bytes(len(data), f"{name} has")
    with seldom_collecting():
        found = verified(read_module(data, name, folder))
        check_limits(found)
        return found
