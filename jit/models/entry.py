"""An entry function of a model, to be traced, lowered, compiled, called. Its graph is made only if a caller needs more than the
cache on disk has of it (`cache.models`).
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem, printable
from ...runtime.later import Later, now
from ...runtime.limits import check_bytes
from ...runtime.public_names import public_class, with_named
from ...runtime.variables import checked_context, process
from ..cache.models import CachedModel, Outline
from ..cache.programs import CachedCompiler, CodeRequest
from ..calls import Numbers, Results, are_traced, not_yet, through, until_quick
from ..compiled import GraphRecipe
from ..given_options import given
from .dynamic_shapes import KEPT, Shape, shapes_of
from .entry_graphs import CallsByValue, Graph, GraphOf, KnownGraph, LimitedGraph, NeedsValues, Shapes, key_of_shapes

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.memory.planner import Memory
    from ...lowering.options import CompileOptions
    from ...lowering.rewrite.tensorflow import Bindings
    from ...lowering.target.target import Target
    from ...runtime.limits import Limits
    from ...runtime.variables import Context
    from ..compiled import Compiled
    from ..descriptors import Interface, TensorDescriptor
    from ..source import ImportedSource
    from ..stages import Lowered, Traced
    from ..tools.check.crosscheck import CrossCheck
    from ..tracing.pytree import Structure


@public_class
class Entry:
    """An entry function of a model. The first call compiles it. Its variables belong to the model's `context`; a call, or
    `compile`, may name another context, and then creates no variable in the model's."""
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None,
                     num_threads: int | None = None, **named: Any) -> Results: ...
    else:
        __slots__ = ("__call__", "__dict__", "__weakref__")

    _limits: Limits | None = None
    """Limits of reading and of each compile."""

    def __init__(self, outline: Outline, graph: Graph, cached: CachedModel | None, shapes: Shapes = (),
                 traced: Later[Traced] | None = None, context: Context | None = None) -> None:
        self._open = Entry(outline._replace(stated=()), graph, cached, (), None, context) if outline.stated else None
        """The entry for inputs of any shapes, if this one is for the shapes that the file states."""
        shapes = shapes or outline.stated
        self._outline, self._graph, self._cached, self._shapes = outline, graph, cached, shapes
        self._context = process if context is None else context
        self._traced = traced or Later(lambda: in_context(graph(shapes), context))
        self._compiled: Compiled[Lowered] | None = None
        self._elsewhere: Compiled[Lowered] | None = None
        """The code with the variables of another context, while all calls so far have named a context."""
        self._by_value: dict[Shapes, CallsByValue] = {}
        """Calls by shapes of inputs, for shapes without code that is valid for all values."""
        self._lock = threading.Lock()
        self._special: dict[Shapes, Entry] = {}
        self._tensors: Interface | None = None
        self.__call__ = until_quick(self, through(self, "_call"), through(self, "_quick"))  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        return self._outline.name

    @property
    def context(self) -> Context:
        """The namespace of the entry's variables."""
        return self._context

    @property
    def is_dynamic(self) -> bool:
        """True if an input has unknown extents."""
        return self._outline.is_dynamic and self._open is None

    @property
    def stated_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes taken from the file for inputs whose extents the model leaves open."""
        return dict(self._outline.stated)

    @property
    def for_any_shape(self) -> Entry:
        """The entry without the shapes that its file states: it is compiled for those of each call."""
        return self._open or self

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
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
        """Descriptors of the variables that the entry uses; as strings, names and types."""
        return self.tensors.variables

    @property
    def constants(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the entry's constants; as strings, names and types."""
        return self.tensors.constants

    @property
    def tensors(self) -> Interface:
        """Descriptors of all inputs, outputs, variables and constants. The cache keeps them with the code: a later process
        needs no graph for them."""
        if self._tensors is None:
            kept = self._cached.recall_interface(self.name, self._shapes) if self._cached else None
            self._tensors = kept or self._traced().tensors
        return self._tensors

    def quantize(self, *inputs: Any, **named: Any) -> Numbers:
        """Return the stored arrays of float inputs: `real / scale + zero_point`, rounded to nearest, halves away from zero, and
        clamped to the range of the storage, as in TensorFlow Lite's reference. The result is one array, a tuple for several, a
        dict for one mapping by name. Inputs of floats are returned unchanged. Raises a Problem if the model does not give the
        quantization."""
        return self.tensors.quantized(inputs, named)

    def dequantize(self, *outputs: Any) -> Numbers:
        """Return the real numbers of stored outputs: `scale * (stored - zero_point)` in float32. Takes arrays in order, the
        results of a call, or one mapping by name."""
        return self.tensors.dequantized(outputs)

    def on_floats(self, *inputs: Any, context: Context | None = None, num_threads: int | None = None, **named: Any
                  ) -> Numbers:
        """Call with float arrays: quantize, call, dequantize."""
        stored = self.quantize(*inputs, **named)
        results = self(*(stored if isinstance(stored, tuple) else (stored,)), context=context, num_threads=num_threads)
        return self.dequantize(results)

    def __repr__(self) -> str:
        return f"<Entry {printable(self.name)}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"

    def trace(self) -> Traced:
        return self._traced()

    def lower(self, options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> Lowered:
        """Lower to loops and a memory plan with these `options`. (`target` and `memory` are deprecated: they are options.)"""
        return self._traced().lower(given("lower", options, target=target, memory=memory))

    def compile(self, options: CompileOptions | None = None, context: Context | None = None, memory: Memory | None = None,
                *, target: Target | None = None) -> Compiled[Lowered]:
        """Compile to machine code with its variables in `context`, or in the model's; the result is kept for calls if neither
        options nor a context are given. (`target` and `memory` are deprecated: they are options.)"""
        options = given("compile", options, target=target, memory=memory)
        if options is not None or context is not None:
            return self._compile(CodeRequest(options), checked_context(context) or self._context)
        with self._lock:
            if self._compiled is None:
                here, self._elsewhere = self._elsewhere, None
                self._compiled = here.bind(self._context) if here else self._compile(CodeRequest(), self._context)
            return self._compiled

    def _code(self, context: Context | None) -> Compiled[Lowered]:
        """Return the code for a call with that context; it creates no variable in other contexts."""
        if self._compiled is not None or context is None or context is self._context:
            return self._compiled or self.compile()
        with self._lock:
            if self._compiled is None and self._elsewhere is None:
                self._elsewhere = self._compile(CodeRequest(), context)
            return self._compiled or self._elsewhere

    def _compile(self, request: CodeRequest, context: Context) -> Compiled[Lowered]:
        compiled = self._made(request, context)
        compiled.calls.graph = self._traced
        return compiled

    def _made(self, request: CodeRequest, context: Context) -> Compiled[Lowered]:
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
        """Return one array, or a tuple of several, for arrays in the order of `inputs`, by name, or in one mapping by name."""
        if are_traced(inputs, named):
            return self._inlined(self._context if context is None else context, inputs, named)
        if self._open is not None and not self._is_as_stated(inputs, named):
            return self._open(*inputs, out=out, context=context, num_threads=num_threads, **named)
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

    def _is_as_stated(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
        """True if the arguments have the shapes that the file states, or are no valid arguments of a call."""
        try:
            given = with_named(self.name, self._outline.inputs, inputs, named) if named else inputs
            shapes = shapes_of(self.name, self._outline.inputs, (given,) if named else inputs)
        except Problem:
            return True
        return all(shapes.get(name, shape) == shape for name, shape in self._outline.stated)

    def _inlined(self, context: Context, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Inline the entry into the function that is being traced."""
        from ..tracing.conversion import tensor
        from ..tracing.inlined_models import inlined
        if not self._outline.is_dynamic:
            return inlined(self._traced(), context, inputs, named)
        given = with_named(self.name, self._outline.inputs, inputs, named)
        shapes = {name: tensor(x).shape for name, x in given.items()}
        return inlined(self.for_any_shape.specialize(shapes)._traced(), context, (given,), {})

    def _quick(self) -> Callable[..., Any] | None:
        """Return the quick call once the entry is compiled for calls without a context."""
        if self.is_dynamic:
            return None
        if self._compiled is None or self._open is None:
            return not_yet if self._compiled is None else self._compiled.__call__
        return self._compiled.calls.quick(through(self, "_call"))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph, and the name of the context; the receiving process takes the code from its cache, or compiles
        it."""
        context = None if self._context is process else self._context
        return Entry, (self._outline, self._portable_graph(), self._cached, self._shapes, None, context)

    def _portable_graph(self) -> GraphOf | KnownGraph:
        """Return a picklable maker of the entry's graph, for use in another process."""
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
        """Return the object itself: code is shared, as functions are, and its variables belong to a context."""
        return self

    def within(self, context: Context | None) -> Entry:
        """Return the entry with its variables in that context; None leaves it unchanged."""
        if checked_context(context) is None or context is self._context:
            return self
        return Entry(self._outline, self._graph, self._cached, self._shapes, None, context)._bounded(self._limits)

    def limited(self, limits: Limits | None) -> Entry:
        """Return the entry with its translation and each compile within limits, without the cache, which would bypass them;
        None leaves it unchanged."""
        if limits is None:
            return self
        return Entry(self._outline, LimitedGraph(self._graph, limits), None, self._shapes, None, self._context)._bounded(limits)

    def _bounded(self, limits: Limits | None) -> Entry:
        self._limits = limits
        return self

    def specialize(self, shapes: Mapping[str, Shape]) -> Entry:
        """Return the entry for inputs of these shapes, by name, which is the unit of compilation of a model with dynamic
        extents. A call specializes by itself; the most recent sets of shapes are kept."""
        if self._open is not None:
            return self._open.specialize(shapes)
        key = key_of_shapes(shapes)
        with self._lock:
            if key not in self._special:
                special = self._specialized(key)
                if len(self._special) >= KEPT:
                    self._special.pop(next(iter(self._special)))
                self._special[key] = special
            return self._special[key]

    def _specialized(self, shapes: Shapes) -> Entry:
        """Return the entry for these shapes. The graph is rewritten immediately only if the cache has no code for them: then
        the shapes may be wrong."""
        name, all_shapes, graph = self.name, (*self._shapes, *shapes), self._graph
        is_known = self._cached is not None and self._cached.code_key(name, all_shapes, CodeRequest()) is not None
        static = self._outline._replace(is_dynamic=False, stated=())
        traced = None if is_known else now(in_context(graph(all_shapes), self._context))
        return Entry(static, graph, self._cached, all_shapes, traced, self._context)._bounded(self._limits)

    def show(self, stage: str = "graph", whole: bool = False, *, after: str | None = None,
             options: CompileOptions | None = None) -> str:
        """Return one stage as text, or the state after a pass, as `Traced.show` does."""
        return self._traced().show(stage, whole, after=after, options=options)

    def check(self, *inputs: Any, options: CompileOptions | None = None, memory: Memory | None = None,
              target: Target | None = None, **named: Any) -> CrossCheck:
        """Compare the compiled function with the reference interpreter, and the interpreter with the source of an imported
        model: on arrays as a call takes them, or on a list of calls, each a list of arrays or a mapping by name. The first call
        determines open extents. Raises a Problem for inputs that a call would refuse, and if there is nothing to compare."""
        from ..tools.check.calls import given_calls, without_options
        inputs, options, memory = without_options(inputs, options, memory)
        calls = given_calls(self.name, inputs, named)
        return self._for_call(calls)._traced().check(calls, options=given("check", options, target=target, memory=memory))

    def _for_call(self, calls: Sequence[Any]) -> Entry:
        """Return the entry for the shapes of the first call."""
        if not (self.is_dynamic and calls):
            return self
        first = calls[0] if isinstance(calls[0], list | tuple) else (calls[0],)
        return self.specialize(shapes_of(self.name, self._outline.inputs, first))


def within_limits(compiled: Compiled[Lowered]) -> Compiled[Lowered]:
    """Check that the arena of the code is within the limits, whatever the origin of the code."""
    check_bytes(compiled.executable.arena_nbytes, "the arena has")
    return compiled


def compiler() -> CachedCompiler:
    """Return the compiler, imported only if the cache does not have the code."""
    from ..stages import COMPILER
    return COMPILER


def in_context(traced: Traced, context: Context | None) -> Traced:
    """Return the graph with its variables in that context by default."""
    from dataclasses import replace
    return replace(traced, context=context)


def of_graph(graph: Module, name: str) -> Entry:
    """Return the entry for a graph of known shapes."""
    from ..stages import Traced
    outline = Outline(name, False, tuple(v.name for v in graph.function(name).arguments))
    return Entry(outline, lambda shapes: Traced(graph, name), None)


def graph_of(module: Later[Module], name: str, bindings: Bindings | None, results: Structure | None = None,
             imported: ImportedSource | None = None) -> GraphOf:
    """Return the maker of the graphs of an entry of a module."""
    return GraphOf(module, name, of_graph, bindings, results, imported)
