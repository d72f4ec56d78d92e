"""Sequences of tensors, whose lengths are known at compile time, and optional values, whose presence is known."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...formulas.indexing import gathered
from ...formulas.layout import part
from ...graph.graph import Value
from ...graph.types import Array
from ..data import Datum, TensorSequence, described
from ..emitter import Emitter, integers
from .along_axis import axis_of
from .control_flow import tensors
from .element_types import element_of
from .gathering import depends, wrapped
from .operator import Operator, operator


def items_of(datum: Datum) -> tuple[Value, ...]:
    """Return the tensors of a sequence."""
    if not isinstance(datum, TensorSequence):
        raise Problem(f"it takes a sequence, not {described(datum)}", kind="type")
    return datum.items


def place_of(position: Value | None, count: int, most: int) -> int:
    """Return an index of a sequence, counted from the end if it is negative; the last if none is given."""
    if position is None:
        return most - 1
    if position.constant is None:
        raise depends("which element of a sequence it is", "make the position a constant")
    at = int(position.constant.reshape(()))
    if not -count <= at < most:
        raise Problem(f"place {at} is not one of a sequence of {count}", kind="shape")
    return at + count if at < 0 else at


@operator("SequenceConstruct")
class SequenceConstruct(Operator):
    def reference(self, *items: Array) -> tuple[Any, ...]:
        return (list(items),)

    def lower(self, e: Emitter, *items: Value) -> Datum:
        return TensorSequence(items, items[0].tensor.element if items else None)


@operator("SequenceEmpty")
class SequenceEmpty(Operator):
    dtype: int = 1

    def reference(self) -> tuple[Any, ...]:
        return ([],)

    def lower(self, e: Emitter) -> Datum:
        return TensorSequence((), element_of(self.dtype))


@operator("SequenceLength")
class SequenceLength(Operator):
    def reference(self, items: Sequence[Array]) -> Array:
        return np.array(len(items), np.int64)

    def lower(self, e: Emitter, items: Datum) -> Value:
        return e.constant(np.array(len(items_of(items)), np.int64))


@operator("SequenceAt")
class SequenceAt(Operator):
    def reference(self, items: Sequence[Array], position: Array) -> Array:
        return items[int(np.reshape(position, ()))]

    def lower(self, e: Emitter, items: Datum, position: Value) -> Value:
        held = items_of(items)
        if position.constant is None and held and len({v.type for v in held}) == 1:
            together = e.concat([e.reshape(v, (1, *v.tensor.dims)) for v in held], 0)
            return gathered(e, together, wrapped(e, e.reshape(position, ()), len(held)), 0)
        return held[place_of(position, len(held), len(held))]


@operator("SequenceInsert")
class SequenceInsert(Operator):
    def reference(self, items: Sequence[Array], tensor: Array, position: Array | None = None) -> tuple[Any, ...]:
        found = list(items)
        found.insert(len(found) if position is None else int(np.reshape(position, ())), tensor)
        return (found,)

    def lower(self, e: Emitter, items: Datum, tensor: Value, position: Value | None = None) -> Datum:
        held = items_of(items)
        at = place_of(position, len(held), len(held) + 1)
        return TensorSequence((*held[:at], tensor, *held[at:]), tensor.tensor.element)


@operator("SequenceErase")
class SequenceErase(Operator):
    def reference(self, items: Sequence[Array], position: Array | None = None) -> tuple[Any, ...]:
        found = list(items)
        del found[-1 if position is None else int(np.reshape(position, ()))]
        return (found,)

    def lower(self, e: Emitter, items: Datum, position: Value | None = None) -> Datum:
        held = items_of(items)
        at = place_of(position, len(held), len(held))
        return TensorSequence((*held[:at], *held[at + 1:]), getattr(items, "element", None))


@operator("ConcatFromSequence")
class ConcatFromSequence(Operator):
    axis: int
    new_axis: int = 0

    def reference(self, items: Sequence[Array]) -> Array:
        return np.stack(items, self.axis) if self.new_axis else np.concatenate(items, self.axis)

    def lower(self, e: Emitter, items: Datum) -> Value:
        held = list(items_of(items))
        if not held:
            raise Problem("a sequence of no tensors cannot be put together", kind="shape")
        axis = axis_of(self.axis, held[0].tensor.rank + bool(self.new_axis))
        if self.new_axis:
            held = [e.reshape(v, (*v.tensor.dims[:axis], 1, *v.tensor.dims[axis:])) for v in held]
        return e.concat(held, axis)


@operator("SplitToSequence")
class SplitToSequence(Operator):
    """Parts of one size, the last possibly smaller, of the given sizes, or of size 1, which may drop the axis."""
    axis: int = 0
    keepdims: int = 1

    def sizes(self, extent: int, split: Array | None) -> list[int]:
        if split is None:
            return [1] * extent
        if np.ndim(split):
            return [int(n) for n in split]
        each = int(np.reshape(split, ()))
        return [min(each, extent - start) for start in range(0, extent, each)]

    def reference(self, x: Array, split: Array | None = None) -> tuple[Any, ...]:
        axis = axis_of(self.axis, x.ndim)
        parts = np.split(x, np.cumsum(self.sizes(x.shape[axis], split))[:-1], axis)
        return ([np.squeeze(p, axis) for p in parts] if split is None and not self.keepdims else parts,)

    def lower(self, e: Emitter, x: Value, split: Value | None = None) -> Datum:
        axis = axis_of(self.axis, x.tensor.rank)
        given = None if split is None else np.array(integers(split, "the sizes")).reshape(split.tensor.dims)
        sizes = self.sizes(x.tensor.dims[axis], given)
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        parts = [part(e, x, axis, start, start + size) for start, size in zip(starts, sizes)]
        if split is None and not self.keepdims:
            parts = [e.reshape(p, [n for a, n in enumerate(p.tensor.dims) if a != axis]) for p in parts]
        return TensorSequence(tuple(parts), x.tensor.element)


@operator("SequenceMap")
class SequenceMap(Operator):
    """A subgraph for each element of a sequence, and of others; operands that are not sequences are the same for all."""

    def reference(self, first: Sequence[Array], *others: Any) -> tuple[Any, ...]:
        rows = [self.inside(0, [item, *(x[k] if isinstance(x, list) else x for x in others)]) for k, item in enumerate(first)]
        return tuple([row[n] for row in rows] for n in range(self.results))

    def lower(self, e: Emitter, first: Datum, *others: Datum) -> tuple[Datum, ...]:
        held = items_of(first)
        rows = [tensors(self.inside(0, [item, *(x.items[k] if isinstance(x, TensorSequence) else x for x in others)]))
                for k, item in enumerate(held)]
        return tuple(TensorSequence(tuple(row[n] for row in rows)) for n in range(self.results))


# ---- optional values -----------------------------------------------------------------------------------------------------
@operator("Optional")
class Optional(Operator):
    type: Any = None

    def reference(self, value: Any = None) -> tuple[Any, ...]:
        return (value,)

    def lower(self, e: Emitter, value: Datum = None) -> Datum:
        return value


@operator("OptionalHasElement")
class OptionalHasElement(Operator):
    def reference(self, value: Any = None) -> Array:
        return np.array(value is not None)

    def lower(self, e: Emitter, value: Datum = None) -> Value:
        return e.constant(np.array(value is not None))


@operator("OptionalGetElement")
class OptionalGetElement(Operator):
    def reference(self, value: Any) -> tuple[Any, ...]:
        if value is None:
            raise ValueError("there is no value")
        return (value,)

    def lower(self, e: Emitter, value: Datum) -> Datum:
        if value is None:
            raise Problem("there is no value", kind="model")
        return value
