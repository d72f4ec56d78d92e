"""`tosaic.jit`: a Python function that is traced, compiled and kept once for every signature that it is called with.

A signature is the nest of the arguments, the dtype and shape of every array in it, and the values of static arguments. Python
numbers are tensors of rank 0; parameters that a call leaves out keep their default, untraced. If several threads call with the
same new signature, one compiles and the others wait.
"""
from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from ..lowering.graph.graph import Function, Module
from ..lowering.graph.types import Array, TensorType
from ..runtime.errors import Position, Problem, Source, TypeProblem, ValueProblem, class_of
from ..runtime.garbage_collection import seldom_collecting
from ..runtime.public_names import closest, public_class
from ..runtime.records import dataclass
from ..runtime.variables import checked_context
from .call_signature import Call, TensorSpec, array_or_number, as_array, kind_of, leaf_type, static_names
from .calls import through
from .compiled import Compiled
from .methods import BoundMethod, MethodsOf
from .open_compiled import OpenCompiled
from .outside import Outside
from .stages import Lowered, Traced
from .tracing import trace as tracing
from .tracing.caller import first_place
from .tracing.pytree import LEAF, flatten, leaf_names, unflatten, with_empty
from .tracing.tensor import Tensor

if TYPE_CHECKING:
    from ..lowering.options import CompileOptions
    from ..runtime.variables import Context

Given = ParamSpec("Given")
More = ParamSpec("More")
Result = TypeVar("Result", covariant=True)

JIT_OPTIONS = {name: f"{name}=..." for name in ("static", "static_argnums", "options", "context")} | {
    name: f"options=tosaic.CompileOptions({field}=...)" for name, field in (
        ("target", "target"), ("memory", "memory"), ("num_threads", "threads"), ("threads", "threads"),
        ("precision", "precision"), ("rows", "rows"), ("weights", "weights"))}
"""Options that `tosaic.jit` takes and a call does not, each with its spelling in `tosaic.jit`."""

READABLE = 0x0001 | 0x0100
"""NumPy's flags C_CONTIGUOUS and ALIGNED."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Contents of a jitted function's cache: the signatures, and the number of compiles since the cache was last cleared."""
    compiles: int
    signatures: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.compiles} compiles, {len(self.signatures)} kept"
        return "\n".join([head, *(f"  ({signature})" for signature in self.signatures)])


class Pending:
    """A compile that one thread is doing; `compiled` stays None if it failed. `outside` holds the outside values that the
    function has read."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.compiled: Compiled[Lowered] | None = None
        self.outside: Outside | None = None

    def is_old(self) -> bool:
        """True if the values that the function has read have changed since."""
        return self.compiled is not None and self.outside is not None and not self.outside.is_now()


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the parameters of a function; raise a Problem for a callable whose parameters Python does not know."""
    if isinstance(function, np.vectorize):
        raise TypeProblem("numpy.vectorize calls a Python function for each number, and a traced tensor has none",
                          tracing.caller(), kind="argument", help="tosaic.jit of the function itself: operators and tosaic.ops "
                          "take whole tensors, and tosaic.ops.where(test, x, y) stands for an if")
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeProblem(f"Python does not know the parameters of {name}", tracing.caller(), kind="argument",
                          help=f"tosaic.jit(lambda x: {name}(x)) says which it has") from None


@public_class
class Jit(Generic[Given, Result]):
    """A function that compiles itself when it is called. Inside another traced function it becomes part of that function."""
    if TYPE_CHECKING:
        @overload
        def __call__(self: Jit[Given, Tensor], *arguments: Given.args, **named: Given.kwargs) -> Array: ...
        @overload
        def __call__(self: Jit[Given, tuple[Tensor, Tensor]], *arguments: Given.args, **named: Given.kwargs
                     ) -> tuple[Array, Array]: ...
        @overload
        def __call__(self: Jit[Given, tuple[Tensor, Tensor, Tensor]], *arguments: Given.args, **named: Given.kwargs
                     ) -> tuple[Array, Array, Array]: ...
        @overload
        def __call__(self: Jit[Given, tuple[Tensor, ...]], *arguments: Given.args, **named: Given.kwargs
                     ) -> tuple[Array, ...]: ...
        @overload
        def __call__(self, *arguments: Given.args, **named: Given.kwargs) -> Result: ...
        def __call__(self, *arguments: Any, **named: Any) -> Any: ...
    else:
        __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, function: Callable[Given, Result], static: Iterable[str | int] = (),
                 options: CompileOptions | None = None, context: Context | None = None) -> None:
        if not callable(function):
            raise TypeProblem(f"jit takes a function, not {class_of(function)}", tracing.caller(), kind="argument",
                              help="@tosaic.jit, or @tosaic.jit(static=...) above the function")
        self.function, self.options, self.context = function, options, checked_context(context)
        self.signature = signature_of(function)
        self.static = static_names(self.signature, static)
        self._kept: dict[Call, Pending] = {}
        self._quick: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.Lock()
        self._compiles = 0
        self._methods: MethodsOf | None = None
        self.keeps_empty = False
        """True to keep arguments and results without elements in the graph, which is then interpreted and never compiled."""
        self.__call__ = through(self, "_dispatch")  # type: ignore[method-assign]
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<tosaic.jit of {self.name}>"

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        """Pickle the module and name, as for a function. If no other process can import it, cloudpickle stores the function
        itself, with the options."""
        from .pickled_function import importable_name
        name = importable_name(self)
        if name is not None:
            return name
        return Jit, (self.function, tuple(self.static), self.options, self.context)

    def __copy__(self) -> Jit:
        return self

    def __deepcopy__(self, memo: object) -> Jit:
        """Return the object itself: functions are shared, and their code with them."""
        return self

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Jit[Given, Result]: ...
    @overload
    def __get__(self: Jit[Concatenate[Any, More], Result], instance: object, owner: type | None = None
                ) -> Jit[More, Result]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return a method bound to its object, whose changes it follows (`methods`), unless the object is a static argument."""
        if instance is None:
            return self
        first = next(iter(self.signature.parameters), None)
        if first is None or first in self.static:
            return functools.partial(self, instance)
        with self._lock:
            if self._methods is None:
                self._methods = MethodsOf(self.function, lambda f: Jit(f, tuple(self.static), self.options, self.context))
        return BoundMethod(self, self._methods.of(instance), instance)

    @property
    def name(self) -> str:
        """The function's name as a symbol of the graph."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return name if name.isidentifier() else "anonymous"

    # ---- calls -------------------------------------------------------------------------------------------------------
    def _dispatch(self, *arguments: Any, **named: Any) -> Any:
        """Run the function, compiled for these arguments; results have the structure that the function returns, with arrays for
        tensors."""
        if tracing.is_tracing():
            return self.function(*arguments, **named)
        if not named:
            try:
                quick = self._quick.get(tuple([(a.dtype, a.shape, a.flags.num & READABLE) for a in arguments]))
            except (AttributeError, TypeError):
                quick = None
            if quick is not None:
                return quick(*arguments)
        return self._call(arguments, named)

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        call, leaves = self._bind(arguments, named)
        abstract = next((leaf for leaf in leaves if isinstance(leaf, TensorSpec)), None)
        if abstract is not None:
            raise TypeProblem(f"{self.name} is called with {abstract}, which has no values", tracing.caller(),
                              kind="argument", help="trace, lower and compile take it")
        pending = self._current(call)
        compiled = pending.compiled
        assert compiled is not None
        arrays = [as_array(leaf, type) for leaf, type in zip(leaves, call.types) if 0 not in type.dims]
        plain = not (named or self.static) and len(arguments) == len(arrays) and all(
            type(a) is np.ndarray and a.flags.num & READABLE == READABLE for a in arguments)
        result = compiled(*arrays)
        if plain:
            slow = through(self, "_dispatch")
            self._quick[tuple([(a.dtype, a.shape, READABLE) for a in arguments])] = self._guarded(compiled, pending.outside)
            native = compiled.calls.quick(slow, tracing.running)
            self.__call__ = slow if native is None else self._guarded(native, pending.outside)  # type: ignore[method-assign]
        return result

    def _guarded(self, call: Callable[..., Any], outside: Outside | None) -> Callable[..., Any]:
        """Return a quick call that applies while no outside value that the function has read has changed."""
        if outside is None or not outside.places:
            return call
        again = through(self, "_again")

        def guarded(*arguments: Any, **named: Any) -> Any:
            return call(*arguments, **named) if outside.is_now() else again(*arguments, **named)
        return guarded

    def _again(self, *arguments: Any, **named: Any) -> Any:
        """Handle a call that finds a change in the values that the function has read."""
        if tracing.is_tracing():
            return self.function(*arguments, **named)
        self._quick = {}
        self.__call__ = through(self, "_dispatch")  # type: ignore[method-assign]
        return self._call(arguments, named)

    def trace(self, *arguments: Any, **named: Any) -> Traced:
        """Return the graph for these arguments: arrays, numbers, or TensorSpecs."""
        return self._trace(self._bind(arguments, named)[0])

    def lower(self, *arguments: Any, **named: Any) -> Lowered:
        """Return the loops and the memory plan for these arguments."""
        return self.trace(*arguments, **named).lower(self.options)

    def compile(self, *arguments: Any, **named: Any) -> Compiled[Lowered]:
        """Return the compiled function for these arguments, which is kept for calls; it takes the tensors in order, without a
        nest. If a TensorSpec has open extents, code is compiled for the shapes of each call."""
        call = self._bind(arguments, named)[0]
        if all(type.is_static for type in call.types):
            return self._compiled(call)
        names = unique([leaf for name, structure in call.structures for leaf in leaf_names(structure, name)])
        return OpenCompiled(self.name, dict(zip(names, call.types)), self._typed, lambda types: self._compiled(
            replace(call, types=types)))

    def _typed(self, name: str, value: Any) -> tuple[Any, TensorType]:
        """Return an argument of a call with open extents as an array, with its type."""
        leaf = array_or_number(self.name, name, value)
        type = leaf_type(self.name, name, name, leaf)
        return as_array(leaf, type), type

    def cache_info(self) -> CacheInfo:
        """Return the contents of the function's cache."""
        with self._lock:
            return CacheInfo(self._compiles, tuple(str(call) for call, p in self._kept.items() if p.compiled))

    def cache_clear(self) -> None:
        """Forget all compiled code; its memory is released when no call runs in it any more."""
        with self._lock:
            self._kept, self._quick, self._compiles = {}, {}, 0
        self.__call__ = through(self, "_dispatch")  # type: ignore[method-assign]

    # ---- one compile for each signature ------------------------------------------------------------------------------
    def _compiled(self, call: Call) -> Compiled[Lowered]:
        compiled = self._current(call).compiled
        assert compiled is not None
        return compiled

    def _current(self, call: Call) -> Pending:
        """Return the compiled function of a signature, for the current outside values that it reads."""
        while True:
            known = self._kept.get(call)
            is_old = known is not None and known.is_old()
            with self._lock:
                pending = self._kept.get(call)
                is_mine = pending is None or (is_old and pending is known)
                if pending is None or is_mine:
                    pending = self._kept[call] = Pending()
            if is_mine:
                self._compile(call, pending)
                return pending
            pending.done.wait()
            if pending.compiled is not None:
                return pending

    def _compile(self, call: Call, pending: Pending) -> None:
        try:
            with seldom_collecting():
                traced = self._traced_outside(call, pending)
                pending.compiled = traced.compile(self.options)
            with self._lock:
                self._compiles += 1
        finally:
            if pending.compiled is None:
                with self._lock:
                    self._kept.pop(call, None)
            pending.done.set()

    def _traced_outside(self, call: Call, pending: Pending) -> Traced:
        """Return the graph, and record the outside values that tracing has read. A value that the first run computes and keeps,
        such as a cached property, is found by the second run; a value that each run changes is a Problem."""
        static = {name: value for name, value, _ in call.static}
        for _ in range(2):
            try:
                pending.outside = Outside(self.function, static)
            except Problem as problem:
                raise problem.at(tracing.caller()) from None
            traced = self._trace(call)
            if pending.outside.is_now():
                return traced
        raise ValueProblem(f"{self.name} changes what it reads from outside while it is traced: that happens once, and not at "
                           "each call", tracing.caller(), kind="argument",
                           help="state that each call changes is a tosaic.Variable")

    # ---- arguments ---------------------------------------------------------------------------------------------------
    def _bind(self, arguments: Sequence[Any], named: dict[str, Any]) -> tuple[Call, list[Any]]:
        """Return the signature of a call, and the leaves of its arguments that are tensors."""
        try:
            bound = self.signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeProblem(f"{self.name}: {error}", tracing.caller(), kind="argument", help=self._help(named)) from None
        static, structures, leaves = [], [], []  # type: ignore[var-annotated]
        for name, value in bound.arguments.items():
            if name in self.static:
                static.append((name, value, kind_of(name, value)))
            else:
                structures.append((name, flatten(value, leaves)))
        names = [(leaf, name) for name, structure in structures for leaf in leaf_names(structure, name)]
        leaves = [array_or_number(self.name, name, leaf) for (name, _), leaf in zip(names, leaves)]
        types = tuple(leaf_type(self.name, *name, leaf) for name, leaf in zip(names, leaves))
        return Call(tuple(static), tuple(structures), types), leaves

    def _help(self, named: Iterable[str]) -> str:
        """Return a hint for a call that fits no parameters."""
        names = list(self.signature.parameters)
        wrong = next((n for n in named if n not in names), None)
        if wrong in JIT_OPTIONS:
            spelled = f"tosaic.jit({JIT_OPTIONS[wrong]})"
            return f"{wrong} is an option of the decorator: {spelled}; its parameters are {self.signature}"
        meant = wrong and closest(wrong, names)
        return f"{f'did you mean {meant}? ' if meant else ''}its parameters are {self.signature}"

    def _trace(self, call: Call) -> Traced:
        for type in call.types:
            if not type.is_static:
                raise ValueProblem(f"{self.name} has an argument {type}, whose extents are not known: a graph has fixed ones",
                                   tracing.caller(), kind="argument",
                                   help="give them: tosaic.TensorSpec((2, 4)); or compile: code is made for the shapes of "
                                        "each call")
        with tracing.tracing() as trace, trace.inside(trace.scope()) as scope:
            trace.keeps_empty = self.keeps_empty
            names = unique([leaf for name, structure in call.structures for leaf in leaf_names(structure, name)])
            position = self.position()
            arguments = [scope.argument(type, name, position) if self.keeps_empty else argument(scope, type, name, position)
                         for name, type in zip(names, call.types)]
            of = [name for name, structure in call.structures for _ in leaf_names(structure, name)]
            trace.parameters.update(zip((a.value for a in arguments), of))
            tensors = iter(arguments)
            values = {name: value for name, value, _ in call.static}
            values |= {name: unflatten(structure, tensors) for name, structure in call.structures}
            results: list[Any] = []
            try:
                structure = flatten(self._run(values), results)
            except RecursionError as error:
                raise self._endless(error) from None
            found = [returned(self.name, r) for r in results]
            structure = with_empty(structure, iter([(r.shape, r.dtype) if self._leaves_out(r) else () for r in found]))
            block = scope.finish([r for r in found if not self._leaves_out(r)], position)
        types = tuple(v.type for v in block.yields)
        function = Function(self.name, block, types, position=position)
        return Traced(Module((function,), tuple(trace.declarations.values()), position=position), self.name,
                      None if structure == LEAF else structure, context=trace.context(self.context))

    def _endless(self, error: RecursionError) -> Problem:
        """Return the Problem of a function whose calls nest without end, at its own call."""
        return Problem(f"{self.name} calls itself, or what it calls does, deeper than Python can: a traced function has "
                       "no values that end a recursion", first_place(error) or self.position(), kind="argument",
                       help="tosaic.while_loop repeats while it runs; a recursion over Python's own values needs them static: "
                            "tosaic.jit(static=...)")

    def _leaves_out(self, result: Tensor) -> bool:
        return not self.keeps_empty and is_empty(result)

    def _run(self, values: dict[str, Any]) -> Any:
        """Run the Python function on traced tensors."""
        bound = inspect.BoundArguments(self.signature, {})
        for name in self.signature.parameters:
            if name in values:
                bound.arguments[name] = values[name]
        return self.function(*bound.args, **bound.kwargs)

    def position(self) -> Position | None:
        """Return the position of the function's definition."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return Position(Source(code.co_filename), code.co_firstlineno, 1) if code else None


def argument(scope: tracing.Scope, type: TensorType, name: str, position: Position | None) -> Tensor:
    """Return an argument of the function; an argument without elements is a constant, and no input of the graph."""
    if tracing.has_no_elements(type):
        return Tensor(tracing.empty_value(type, position), scope)
    return scope.argument(type, name, position)


def returned(function: str, value: Any) -> Tensor:
    """Return a result as a tensor."""
    from .tracing.complex_tensor import leaf_tensor
    try:
        return leaf_tensor(value)
    except Problem as problem:
        raise type(problem)(f"{function} returns {class_of(value)} that is no tensor: {problem.message}",
                            problem.position, kind=problem.kind, help=problem.help) from None


def is_empty(tensor: Tensor) -> bool:
    """True if a result has no elements; a list of extents is a value whatever it holds."""
    return isinstance(tensor.value.type, TensorType) and not tensor.size


def unique(names: Sequence[str]) -> list[str]:
    """Return the names as unique symbols of the graph."""
    found: dict[str, None] = {}
    for name in names:
        plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name) or "_"
        while plain in found:
            plain += "_"
        found[plain] = None
    return list(found)
