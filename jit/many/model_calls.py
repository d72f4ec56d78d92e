"""The work on an item of `map`: read its arrays, call the model, write the results. It is pickled with the model, whose code
each machine takes from its cache or compiles once.
"""
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ...runtime.arguments import dtype_of
from ...runtime.errors import Problem
from ...runtime.variables import Context
from ..descriptors import TensorDescriptor
from .call_shapes import CallShapes, call_shapes
from .one_compile import alone

if TYPE_CHECKING:
    from ...lowering.graph.types import Array
    from ..models.entry import Entry


class Item(Protocol):
    """A part of the inputs: one file, or some rows of a data set."""
    @property
    def name(self) -> str:
        """Name of the item in messages and results."""

    def read(self, inputs: Sequence[str]) -> Mapping[str, Array]:
        """Return the arrays of these inputs, by name."""


class Results(Protocol):
    """The destination of results. Writing the results of an item again must leave the old ones or the same ones, complete and
    once."""
    def write(self, item: Any, outputs: Mapping[str, Array]) -> int:
        """Write the results of an item; return their size in bytes."""


class Done(NamedTuple):
    """The numbers of calls and of result bytes of an item."""
    calls: int
    nbytes: int


class ModelCalls:
    """Calls of an entry, item by item. With `in_order` the calls of an item are a sequence that shares the variables; otherwise
    each call is independent. Variables begin with their initial values."""

    def __init__(self, entry: Entry, results: Results, in_order: bool) -> None:
        self.entry, self.results, self.in_order = entry, results, in_order
        self._begin()

    def _begin(self) -> None:
        self._known: set[tuple[tuple[int, ...], ...]] = set()
        self._compiling = threading.Lock()
        self._threads = threading.local()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.entry, self.results, self.in_order

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.entry, self.results, self.in_order = state
        self._begin()

    def prepare(self) -> None:
        """Compile an entry without open extents here, so that its errors are reported before any work begins, and the processes
        of this machine find the code in the cache."""
        self.entry.compile(context=Context("map"))

    def __call__(self, item: Item) -> Done:
        names = self.entry.input_names
        given = item.read(names)
        missing = next((name for name in names if name not in given), None)
        if missing is not None:
            raise Problem(f"{item.name} has no array for input {missing}", kind="argument",
                          help=f"it has {', '.join(given) or 'none'}")
        arrays = [as_stored(given[name], tensor) for name, tensor in zip(names, self.entry.inputs)]
        form = call_shapes(self.entry.inputs, arrays)
        outputs = form.joined(self._results(form, arrays))
        nbytes = self.results.write(item, dict(zip(self.output_names, outputs)))
        return Done(form.times, nbytes)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs in results: those of compiled code."""
        return tuple(t.name for t in self.entry.outputs)

    def _results(self, form: CallShapes, arrays: Sequence[Array]) -> list[tuple[Array, ...]]:
        context = self._context()
        found = []
        context.reset()
        for number, call in enumerate(form.calls(arrays, self.entry.inputs)):
            if number and not self.in_order:
                context.reset()
            result = self._call(call, context)
            found.append(tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),))
        return found

    def _context(self) -> Context:
        """Return the context of this thread of the worker."""
        if not hasattr(self._threads, "context"):
            self._threads.context = Context("map")
        found: Context = self._threads.context
        return found

    def _call(self, call: Sequence[Array], context: Context) -> Any:
        """Make a call. The first call with arrays of these shapes compiles, so it waits until no other process of the machine
        does such a call."""
        shapes = tuple(a.shape for a in call)
        if shapes in self._known:
            return self.entry(*call, context=context)
        with self._compiling, alone():
            result = self.entry(*call, context=context)
        self._known.add(shapes)
        return result


def as_stored(array: Array, tensor: TensorDescriptor) -> Array:
    """Return the array, with its bytes reinterpreted as the input's type if files cannot name that type (bf16, fp8)."""
    dtype = dtype_of(tensor.dtype)
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    return np.require(array, requirements=["C", "A"])
