"""Elements by index: gather, scatter. TOSA's GATHER and SCATTER take rows [N, K, C] by their number; here indices into several
axes become one number, and what has duplicates is combined over all updates.

Compiled code reads the nearest row for an index that is out of range, and writes none.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...runtime.errors import Problem, require
from ..graph.graph import Value
from ..graph.types import I1, I32, I64, ElementType, TensorType
from .tosa_builder import TosaBuilder, is_narrow

SUMMED = ("f16", "bf16", "f32", "i32", "i64")
"""What TOSA reduces as it is."""


ROUNDS = 8
"""Of writes one after the other, for indices that are known and repeat themselves; more are summed in one go."""


def index(e: TosaBuilder, indices: Value) -> Value:
    """Indices in a type that TOSA takes."""
    return indices if indices.tensor.element in (I32, I64) else e.cast(indices, I32)


def gathered(e: TosaBuilder, x: Value, indices: Value, axis: int, batch: int = 0) -> Value:
    """x[batches, between, indices, behind]; the first axes of the indices are those of the batches."""
    shape, places = x.tensor.dims, indices.tensor.dims
    require(0 <= batch <= min(axis, len(places)) and shape[:batch] == places[:batch],
            f"{batch} axes are batches, but {x.type} and {indices.type} differ there, or axis {axis} is one of them",
            kind="shape")
    groups, between, behind = (math.prod(n) for n in (shape[:batch], shape[batch:axis], shape[axis + 1:]))
    count = math.prod(places[batch:])
    dims = (*shape[:axis], *places[batch:], *shape[axis + 1:])
    if not math.prod(dims):
        return e.reshape(x, dims) if not x.tensor.size else e.zeros(TensorType(dims, x.tensor.element))
    require(shape[axis] > 0, f"axis {axis} of {x.type} has nothing to take", kind="shape")
    rows = e.broadcast_to(e.reshape(index(e, indices), (groups, 1, count)), (groups, between, count))
    values = e.reshape(x, (groups * between, shape[axis], behind))
    return e.reshape(e("gather", values, e.reshape(rows, (groups * between, count))), dims)


def row_numbers(e: TosaBuilder, indices: Value, extents: Sequence[int], checked: bool = False) -> Value:
    """[W, 1]: the last axis of the indices as one number into axes of these extents; -1 with `checked` where one of them is
    out of range, so that it names no other row."""
    width, depth = math.prod(indices.tensor.dims[:-1]), len(extents)
    if depth == 0:
        return e.constant(np.zeros((width, 1), np.int32))
    if depth == 1:
        return e.reshape(index(e, indices), (width, 1))
    flat = e.cast(e.reshape(indices, (width, depth)), I32)
    strides = np.array([[math.prod(extents[d + 1:]) for d in range(depth)]], np.int32)
    places = e("reduce_sum", e.product(flat, e.constant(strides)), axis=1)
    if not checked:
        return places
    above = e("greater_equal", flat, e.splat(0, flat))
    below = e("greater", e.constant(np.array([extents], np.int32)), flat)
    inside = e("reduce_all", e("logical_and", above, below), axis=1)
    return e.select(inside, places, e.splat(-1, places))


class UpdatedRows:
    """A tensor as rows [1, K, C], and updates of some of them, [1, W, C], with their numbers [1, W]."""

    def __init__(self, e: TosaBuilder, x: Value, indices: Value, updates: Value) -> None:
        *outer, depth = indices.tensor.dims
        self.e, self.dims = e, x.tensor.dims
        require(depth <= len(self.dims), f"{indices.type} names {depth} axes of {x.type}", kind="shape")
        self.count, self.width = math.prod(self.dims[:depth]), math.prod(outer)
        self.columns = math.prod(self.dims[depth:])
        expected = (*outer, *self.dims[depth:])
        require(updates.tensor.dims == expected and updates.tensor.element == x.tensor.element,
                f"the updates are {updates.type}, but {indices.type} names parts of {x.type} of extents {list(expected)}",
                kind="shape")
        self.is_empty = not (self.count * self.width * self.columns)
        if not self.is_empty:
            self.x = e.reshape(x, (1, self.count, self.columns))
            self.numbers = e.reshape(row_numbers(e, indices, self.dims[:depth], checked=True), (1, self.width))
            self.updates = e.reshape(updates, (1, self.width, self.columns))

    def result(self, rows: Value) -> Value:
        return self.e.reshape(rows, self.dims)

    def written(self) -> Value:
        """The rows with the updates in their places, the last one of those that share a place. SCATTER takes no more updates
        than there are rows."""
        x = self.x
        for start in range(0, self.width, self.count):
            size = min(self.count, self.width - start)
            x = self.e("scatter", x, self.e.slice(self.numbers, (0, start), (1, size)),
                       self.e.slice(self.updates, (0, start, 0), (1, size, self.columns)))
        return x

    def rounds(self) -> list[np.ndarray] | None:
        """Which updates have places of their own, round after round; None if that is not known, or there are many."""
        if self.numbers.constant is None:
            return None
        found: list[list[int]] = []
        seen: dict[int, int] = {}
        for w, place in enumerate(self.numbers.constant.reshape(-1).tolist()):
            if 0 <= place < self.count:
                seen[place] = seen.get(place, -1) + 1
                if seen[place] == len(found):
                    found.append([])
                found[seen[place]].append(w)
        return [np.array(r, np.int32)[None] for r in found] if len(found) <= ROUNDS else None

    def combined(self, name: str, reduction: str, identity: object) -> Value:
        """Every row combined with all of its updates; `identity` changes nothing."""
        e, x, updates = self.e, self.x, self.updates
        if (rounds := self.rounds()) is not None:
            for chosen in rounds:
                places = e("gather", e.reshape(self.numbers, (1, self.width, 1)), e.constant(chosen))
                rows = e.reshape(places, chosen.shape)
                new = e.arithmetic(name, e("gather", x, rows), e("gather", updates, e.constant(chosen)))
                x = e("scatter", x, rows, new)
            return x
        each = e.constant(np.arange(self.count, dtype=self.numbers.tensor.element.dtype).reshape(-1, 1))
        hit = e.reshape(e("equal", self.numbers, each), (self.count, self.width, 1))
        value = e.constant(np.full((1, 1, 1), identity, x.tensor.element.dtype), x.tensor.element)
        all_of_them = e(reduction, e.select(hit, updates, value), axis=1)
        found = e.arithmetic(name, x, e.reshape(all_of_them, x.tensor.dims))
        if name != "add" or not x.tensor.element.is_float:
            return found
        touched = e.reshape(e("reduce_any", hit, axis=1), (1, self.count, 1))  # -0.0 + 0.0 is another number
        return e.select(touched, found, x)


def computed(element: ElementType) -> ElementType:
    """The type in which updates are combined."""
    if element.name in SUMMED:
        return element
    if element == I1 or is_narrow(element):
        return I32
    raise Problem(f"updates of {element} that may share a place cannot be compiled", kind="unsupported")


def combined(e: TosaBuilder, x: Value, indices: Value, updates: Value, name: str) -> Value:
    """x with updates added to it, or the greater or less of both."""
    own, element = x.tensor.element, computed(x.tensor.element)
    rows = UpdatedRows(e, e.cast(x, element), indices, e.cast(updates, element))
    if rows.is_empty:
        return x
    bounds = (-np.inf, np.inf) if element.is_float else (element.minimum, element.maximum)
    reduction, identity = {"add": ("reduce_sum", 0), "maximum": ("reduce_max", bounds[0]),
                           "minimum": ("reduce_min", bounds[1])}[name]
    return e.cast(rows.result(rows.combined(name, reduction, identity)), own)


def either(e: TosaBuilder, condition: Value, a: Value, b: Value) -> Value:
    """One of two numbers of rank 0, by a condition of any shape. SELECT takes neither f64 nor unsigned integers: for these the
    number is looked up in a table of the two."""
    element = a.tensor.element
    if element.name in ("i1", "i8", "i16", *SUMMED):
        return e.select(condition, a, b)
    table = e.concat([e.reshape(b, (1, 1, 1)), e.reshape(a, (1, 1, 1))], 1)
    which = e.reshape(e.cast(condition, I32), (1, condition.tensor.size))
    return e.reshape(e("gather", table, which), condition.tensor.dims)
