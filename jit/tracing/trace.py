"""Recording: while a Python function runs on traced tensors, every operation on them becomes an operation of a graph.

A `Trace` belongs to one thread and one run of a function; it is a stack of scopes, one for each block being built. Every
operation carries the user's position: the line and columns of the innermost frame outside this package.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...lowering.formulas.term import Term
from ...lowering.formulas.tosa_builder import PlacedBuilder
from ...lowering.graph.graph import Block, BlockBuilder, Operation, Value
from ...lowering.graph.operator import OPERATORS, Op
from ...lowering.graph.types import BY_STORAGE, Array, ElementType, ShapeType, TensorType, Type
from ...runtime.errors import Position, Problem, TypeProblem, ValueProblem
from ...runtime.joined_context import JoinedContext
from ...runtime.variables import Context, process
from .caller import caller

if TYPE_CHECKING:
    from .tensor import Tensor

PYTHON: dict[str, type[Problem]] = {"type": TypeProblem, "shape": ValueProblem, "argument": ValueProblem}
"""Default exception class for each kind of problem: the one that Python would raise."""


def problem(message: str, kind: str = "type", help: str | None = None, raised: type[Problem] | None = None) -> Problem:
    """Return a Problem at the user's line; `raised` is its class if the kind does not determine it."""
    return (raised or PYTHON.get(kind, Problem))(message, caller(), kind=kind, help=help)


class Scope:
    """One block being built, `active` while its Python function runs. The block's tensors are invalid before and after."""

    def __init__(self, trace: Trace, label: str, prefix: str) -> None:
        self.trace, self.label, self.prefix = trace, label, prefix
        self.builder = BlockBuilder(prefix)
        self.active = False

    def argument(self, type: Type, name: str, position: Position | None = None) -> Tensor:
        from .tensor import Tensor
        return Tensor(self.builder.argument(type, self.prefix + name, position), self)

    def finish(self, results: Sequence[Tensor], position: Position | None = None) -> Block:
        return self.builder.finish(*(r.value for r in results), position=position)


class Trace:
    """One run of a Python function. `declarations` holds its variables by symbol; `homes` the home context of each, and its
    name there; `arrays` the constants made of NumPy arrays, by the array's identity; `parameters` the names of its arguments'
    values."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.declarations: dict[str, Operation] = {}
        self.homes: dict[str, tuple[Context, str]] = {}
        self.arrays: dict[int, tuple[Array, Tensor]] = {}
        self.parameters: dict[Value, str] = {}
        self.keeps_empty = False
        """True if tensors without elements stay in the graph: for a single operator, which is interpreted."""
        self.models = 0
        """Number of models inlined into the function."""
        self._regions = 0

    def scope(self, label: str = "") -> Scope:
        """Return a new block; the label prefixes the names of its values, so that names are unique in the function."""
        if not label:
            return Scope(self, "the function", "")
        self._regions += 1
        return Scope(self, label, f"{label}{self._regions}.")

    def symbol(self, name: str, context: Context) -> str:
        """Return the symbol of a context's variable: its name, or its name with a number if another variable has that name
        here."""
        home = context.home(name)
        candidates = (name, *(f"{name}_{n}" for n in range(2, len(self.declarations) + 3)))
        found = next(s for s in candidates if s not in self.declarations or self.homes[s] == home)
        self.homes[found] = home
        return found

    def context(self, given: Context | None) -> Context | None:
        """Return the namespace of the function's variables: the given one, or the home contexts of the variables; None for the
        process."""
        moved = {symbol: home for symbol, home in self.homes.items() if home != (process, symbol)}
        return JoinedContext(process, moved) if moved and given is None else given

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[Scope]:
        """Record into `scope`."""
        self.scopes.append(scope)
        scope.active = True
        try:
            yield scope
        finally:
            scope.active = False
            self.scopes.pop()


class _Threads(threading.local):
    def __init__(self) -> None:
        self.traces: list[Trace] = []


_threads = _Threads()


running = ctypes.c_int64(0)
"""Number of traces in all threads: native code that replaces a traced function checks it."""

_counting = threading.Lock()


@contextmanager
def tracing() -> Iterator[Trace]:
    """Run a new trace for this thread."""
    trace = Trace()
    _threads.traces.append(trace)
    count(1)
    try:
        yield trace
    finally:
        count(-1)
        _threads.traces.pop()


def count(more: int) -> None:
    with _counting:
        running.value += more


def is_tracing() -> bool:
    """True if this thread is running a function to record it."""
    return bool(_threads.traces)


def current() -> Scope:
    """Return the block to which operations are appended now."""
    if not _threads.traces:
        raise problem("this works on traced tensors, inside a function that tosaic.jit compiles", "argument",
                      help="decorate the function with @tosaic.jit and call it with arrays")
    return _threads.traces[-1].scopes[-1]


def operator(name: str) -> Callable[..., Op]:
    """Return the class of an operator of the table, `name` without its dialect."""
    from ...lowering.dialects import tosa as _  # noqa: F401  fills the table
    return OPERATORS[f"tosa.{name}"]


def usable(tensor: Tensor, scope: Scope, position: Position | None) -> Value:
    """Return the graph's value of a tensor, which must belong to a block that is being built around `scope`."""
    if tensor.scope.active and tensor.scope.trace is scope.trace:
        return tensor.value
    where = "another call" if tensor.scope.trace is not scope.trace else f"{tensor.scope.label}, which has ended"
    raise ValueProblem(f"this {tensor.type} belongs to {where}", position, kind="argument",
                       help="return it from there instead of keeping it in a variable outside")


def record(op: Op, *operands: Tensor, regions: Sequence[Block] = (), types: tuple[Type, ...] | None = None,
           attributes: Mapping[str, Any] | None = None) -> tuple[Tensor, ...]:
    """Append an operation at the user's position and return its results."""
    from .tensor import Tensor
    scope, position = current(), caller()
    values = [usable(operand, scope, position) for operand in operands]
    if (nothing := without_elements(op, values, regions, types, position)) is not None:
        return tuple(Tensor(value, scope) for value in nothing)
    results = scope.builder.add(op, *values, regions=regions, position=position, types=types,
                                attributes=attributes or {})
    return tuple(Tensor(value, scope) for value in results)


class TracedBuilder(PlacedBuilder):
    """A builder that appends to a block that is being traced."""

    def add(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        nothing = without_elements(op, operands, (), None, self.position)
        return super().add(op, *operands) if nothing is None else nothing


def without_elements(op: Op, operands: Sequence[Value], regions: Sequence[Block], types: tuple[Type, ...] | None,
                     position: Position | None) -> tuple[Value, ...] | None:
    """Return the results of an operation that has no elements: constants outside the graph, which has no such tensors. Return
    None if the results have elements. Raise a Problem if they would have elements but an operand has none."""
    if current().trace.keeps_empty:
        return None
    is_empty = any(has_no_elements(value.type) for value in operands)
    if not is_empty and op.name != "tosa.const" and types is None and not any(
            isinstance(value.type, ShapeType) for value in operands):
        return None
    try:
        found = types if types is not None else op.types(operands, regions)
    except Problem as problem:
        raise problem.at(position) from None
    if found and all(map(has_no_elements, found)):
        return tuple(empty_value(type, position) for type in found if isinstance(type, TensorType))
    if is_empty:
        given = " and ".join(str(value.type) for value in operands)
        raise ValueProblem(f"{op.name.removeprefix('tosa.')} of {given}: there are no elements", position, kind="shape")
    return None


def has_no_elements(type: Type) -> bool:
    return isinstance(type, TensorType) and type.shape is not None and 0 in type.shape


def empty_value(type: TensorType, position: Position | None) -> Value:
    """Return a value without elements that no operation defines."""
    data = np.zeros(type.dims, type.element.dtype)
    data.setflags(write=False)
    return Value("empty", type, position, data)


def apply(name: str, *operands: Tensor, **attributes: Any) -> Tensor:
    """Record one use of an operator with one result."""
    return record(operator(name)(**attributes), *operands)[0]


def frozen(array: Array) -> Array:
    """Return the array itself if nobody can write to it, else a copy: a graph is immutable."""
    if array.flags.writeable or not array.flags.c_contiguous or not array.flags.owndata:
        array = np.array(array, order="C")
        array.setflags(write=False)
    return array


def builder(scope: Scope, position: Position | None) -> PlacedBuilder:
    """Return a builder that appends operators to a block that is being traced."""
    from ...lowering.dialects import tosa, tosaic  # noqa: F401  fill the table
    return TracedBuilder(scope.builder, position)


def recorded(formula: Callable[..., Term], *operands: Tensor) -> Tensor:
    """Record a formula of terms (`lowering/formulas`), with all of its operations at the user's position."""
    return recorded_all(lambda *terms: (formula(*terms),), *operands)[0]


def recorded_all(formula: Callable[..., tuple[Term, ...]], *operands: Tensor) -> tuple[Tensor, ...]:
    """Record a formula of several results; a result that is an operand stays the same tensor."""
    from .tensor import Tensor
    scope, position = current(), caller()
    extend = builder(scope, position)
    found = formula(*(Term(extend, usable(operand, scope, position)) for operand in operands))
    own = {operand.value: operand for operand in operands}
    return tuple(own[term.value] if term.value in own else Tensor(term.value, scope) for term in found)


def constant(array: Array, element: ElementType | None = None) -> Tensor:
    """Record a constant of the graph; `element` is its type if the dtype does not determine it (i4, i48)."""
    if element is None and array.dtype.name not in BY_STORAGE:
        raise problem(f"an array of {array.dtype} cannot be a tensor", "type", help="tensors hold numbers or bools")
    return made(lambda extend: extend.constant(frozen(array), element))


def shape(values: Sequence[int]) -> Tensor:
    """Record a constant list of extents."""
    return made(lambda extend: extend.shape(values))


def made(what: Callable[[PlacedBuilder], Value]) -> Tensor:
    """Record a value that a builder makes without operands, at the user's position."""
    from .tensor import Tensor
    scope = current()
    return Tensor(what(builder(scope, caller())), scope)
