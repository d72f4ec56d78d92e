"""What a worker does with an item of `map`: reads its arrays, calls the model, writes the results. It is pickled with the
model, whose code each machine takes from its cache or makes once.
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
        """What messages and results call it."""

    def read(self, inputs: Sequence[str]) -> Mapping[str, Array]:
        """The arrays of these inputs, by name."""


class Results(Protocol):
    """Where results go. Writing those of an item again leaves what was there, or the same: whole, and once."""
    def write(self, item: Any, outputs: Mapping[str, Array]) -> int:
        """Write the results of an item; how many bytes they have."""


class Done(NamedTuple):
    """What an item was."""
    calls: int
    nbytes: int


class ModelCalls:
    """Calls of an entry, item by item. With `in_order` the calls of an item are a sequence, which variables last for; else each
    is by itself. Variables begin with their initial values."""

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
        """Compile here what has no open extents, so that what is wrong with it is said before anything begins, and the
        processes of this machine find the code in the cache."""
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
        """What the outputs are called in results: as compiled code calls them."""
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
        """A namespace of variables for each thread of a worker."""
        if not hasattr(self._threads, "context"):
            self._threads.context = Context("map")
        found: Context = self._threads.context
        return found

    def _call(self, call: Sequence[Array], context: Context) -> Any:
        """A call. The first with arrays of these shapes is made while no other process of the machine makes one: it
        compiles."""
        shapes = tuple(a.shape for a in call)
        if shapes in self._known:
            return self.entry(*call, context=context)
        with self._compiling, alone():
            result = self.entry(*call, context=context)
        self._known.add(shapes)
        return result


def as_stored(array: Array, tensor: TensorDescriptor) -> Array:
    """The array, its bytes seen as the input's type where files cannot name it (bf16, fp8)."""
    dtype = dtype_of(tensor.dtype)
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    return np.require(array, requirements=["C", "A"])
