"""Slices: at known indices by SLICE and REVERSE, at indices that are known only at run time by GATHER.

The slice of one axis is a `Part`: a start, a number of elements and a step. The extents of a result must be known at compile
time. If a start is unknown, x[i:i+2] still has two elements: both ends are traced back to their origins.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .....runtime.errors import Problem
from .....runtime.records import dataclass
from ....formulas.layout import padded, part, reversed_axis
from ....graph.foreign import find
from ....graph.graph import Operation, Value
from ....graph.types import I32, TensorType
from ...emitter import Emitter, integers
from ...tensor_lists import as_int
from .layout import require
from .table import legalization


@dataclass(frozen=True, slots=True)
class Part:
    """`count` elements of an axis, from `start` on in steps. A start that is a value is known only at run time."""
    start: int | Value
    count: int
    step: int = 1


# ---- partially known vectors -----------------------------------------------------------------------------------------
def entries(e: Emitter, vector: Value) -> list[Value]:
    """Return the elements of a vector, one value of rank 0 each: constants if they are known, even if the vector is not."""
    found = e.definitions.get(vector)
    if vector.constant is None and found is not None and found.op.name == "tosa.concat":
        return [entry for operand in found.operands for entry in entries(e, operand)]
    if vector.constant is None and found is not None and found.op.name == "tosa.reshape" and vector.tensor.size == 1:
        return [e.reshape(found.operands[0], ())]
    return [e.reshape(part(e, vector, 0, i, i + 1), ()) for i in range(vector.tensor.dims[0])]


def traced(e: Emitter, value: Value) -> tuple[Value | None, int]:
    """Return (origin, offset from it) of a value; the origin of a known value is None."""
    if value.constant is not None:
        return None, int(value.constant.item())
    found = e.definitions.get(value)
    if found is None or value.tensor.size != 1:
        return value, 0
    match found.op.name:
        case "tosa.reshape" | "tosa.cast" if found.operands[0].tensor.element.is_integer:
            return traced(e, found.operands[0])
        case "tosa.add" | "tosa.sub":
            (a, i), (b, j) = (traced(e, v) for v in found.operands)
            sign = 1 if found.op.name == "tosa.add" else -1
            if b is None:
                return a, i + sign * j
            if a is None and sign == 1:
                return b, i + j
    return value, 0


def distance(e: Emitter, begin: Value, end: Value) -> int | None:
    """Return end - begin, if it is known at compile time."""
    (a, i), (b, j) = traced(e, begin), traced(e, end)
    return j - i if a is b else None


# ---- taking parts ----------------------------------------------------------------------------------------------------
def taken(e: Emitter, x: Value, parts: Sequence[Part]) -> Value:
    """Return the given part of each axis."""
    fixed = [p if isinstance(p.start, int) else Part(0, n) for p, n in zip(parts, x.tensor.dims)]
    x = fixed_parts(e, x, fixed)
    for axis, p in enumerate(parts):
        if isinstance(p.start, Value):
            x = rows_at(e, x, axis, p)
    return x


def fixed_parts(e: Emitter, x: Value, parts: Sequence[Part]) -> Value:
    if not all(p.count for p in parts):
        return e.reshape(x, [p.count for p in parts])
    lows = [low(p) for p in parts]
    sizes = [(p.count - 1) * abs(p.step) + 1 for p in parts]
    for axis, (p, n) in enumerate(zip(parts, x.tensor.dims)):
        if p.count > 1 and abs(p.step) > 1:
            x, lows[axis], sizes[axis] = every(e, x, axis, p, n), 0, p.count
    x = e.slice(x, lows, sizes)
    for axis, p in enumerate(parts):
        if p.step < 0:
            x = reversed_axis(e, x, axis)
    return x


def low(p: Part) -> int:
    """Return the lowest index of a part."""
    assert isinstance(p.start, int)
    return p.start if p.step > 0 else p.start + (p.count - 1) * p.step


def every(e: Emitter, x: Value, axis: int, p: Part, n: int) -> Value:
    """Return every step-th element of an axis, in ascending order: split the axis in two and take one element of the second.
    Whole groups may need a border."""
    step, first = abs(p.step), low(p)
    start = min(first, max(0, n - p.count * step))
    missing = max(0, start + p.count * step - n)
    if missing:
        x = padded(e, x, [(0, missing * (d == axis)) for d in range(x.tensor.rank)])
    x = part(e, x, axis, start, start + p.count * step)
    before, after = math.prod(x.tensor.dims[:axis]), math.prod(x.tensor.dims[axis + 1:])
    rounds = e.reshape(x, (before * p.count, step, after))
    dims = (*x.tensor.dims[:axis], p.count, *x.tensor.dims[axis + 1:])
    return e.reshape(part(e, rounds, 1, first - start, first - start + 1), dims)


def rows_at(e: Emitter, x: Value, axis: int, p: Part) -> Value:
    """Return a part whose start is known at run time; an index out of range reads the nearest end."""
    assert isinstance(p.start, Value)
    if not x.tensor.size or not p.count:
        return e.reshape(x, [*x.tensor.dims[:axis], p.count, *x.tensor.dims[axis + 1:]])
    before, n, after = math.prod(x.tensor.dims[:axis]), x.tensor.dims[axis], math.prod(x.tensor.dims[axis + 1:])
    start = e.reshape(e.cast(p.start, I32), (1, 1))
    places = start if p.count == 1 else e.sum(start, e.constant(np.arange(p.count, dtype=np.int32)[None] * np.int32(p.step)))
    found = e("gather", e.reshape(x, (before, n, after)), e.broadcast_to(places, (before, p.count)))
    return e.reshape(found, (*x.tensor.dims[:axis], p.count, *x.tensor.dims[axis + 1:]))


# ---- Slice -----------------------------------------------------------------------------------------------------------
@legalization("tf.Slice")
def slice_of(e: Emitter, operation: Operation, x: Value, begin: Value, size: Value) -> Value:
    declared = declared_dims(operation, x.tensor.rank)
    begins, sizes = entries(e, begin), entries(e, size)
    require(len(begins) == len(sizes) == x.tensor.rank, f"{len(begins)} starts and {len(sizes)} sizes are given for {x.type}")
    parts = [slice_part(*given) for given in zip(begins, sizes, x.tensor.dims, declared)]
    return taken(e, x, parts)


def declared_dims(operation: Operation, rank: int) -> tuple[int | None, ...]:
    """Return the extents that the text declares for a result of this rank."""
    type = operation.results[0].type
    known = isinstance(type, TensorType) and type.shape is not None and len(type.shape) == rank
    return type.shape or () if known and isinstance(type, TensorType) else (None,) * rank


def slice_part(begin: Value, size: Value, n: int, declared: int | None) -> Part:
    start, count = as_int(begin), as_int(size)
    count = declared if count is None or (count < 0 and start is None) else n - (start or 0) if count < 0 else count
    if count is None:
        raise Problem("the size of the slice must be known when compiling", kind="shape",
                      help="its start may be known at run time only, its size may not")
    if start is None:
        require(count <= n, f"{count} elements are taken from {n}")
        return Part(0, n) if count == n else Part(begin, count)
    require(start >= 0 and start + count <= n, f"{count} elements from {start} on are taken from {n}")
    return Part(start, count)


# ---- StridedSlice ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SliceEntry:
    """One entry of begin, end and strides, and its masks."""
    begin: Value
    end: Value
    stride: int
    begin_masked: bool
    end_masked: bool
    kind: str
    """Kind of the entry: ellipsis, new, shrink, or range."""


def specs(e: Emitter, operation: Operation, begin: Value, end: Value, strides: Value) -> list[SliceEntry]:
    def mask(name: str, i: int) -> bool:
        return bool(int(getattr(find(operation, name), "value", 0)) >> i & 1)

    def kind(i: int) -> str:
        names = (("ellipsis", "ellipsis_mask"), ("new", "new_axis_mask"), ("shrink", "shrink_axis_mask"))
        return next((short for short, name in names if mask(name, i)), "range")

    found = [SliceEntry(b, c, s, mask("begin_mask", i), mask("end_mask", i), kind(i)) for i, (b, c, s) in enumerate(
        zip(entries(e, begin), entries(e, end), integers(strides, "the strides"), strict=True))]
    require(sum(s.kind == "ellipsis" for s in found) <= 1, "a slice has more than one ellipsis")
    require(all(s.stride for s in found), "a stride is 0")
    return found


def strided(e: Emitter, operation: Operation, given: list[SliceEntry], dims: Sequence[int]) -> tuple[list[Part], list[int]]:
    """Return the part of each axis of a tensor of these extents, and the extents of the result."""
    used = sum(s.kind in ("range", "shrink") for s in given)
    require(used <= len(dims), f"a slice names {used} axes of a tensor of rank {len(dims)}")
    left = len(dims) - used
    declared = declared_dims(operation, sum(s.kind in ("range", "new") for s in given) + left)
    parts: list[Part] = []
    result: list[int] = []
    if all(s.kind != "ellipsis" for s in given):
        zero = e.constant(np.int32(0))
        given = [*given, SliceEntry(zero, zero, 1, True, True, "ellipsis")]
    for s in given:
        match s.kind:
            case "ellipsis":
                whole = dims[len(parts):len(parts) + left]
                parts += [Part(0, n) for n in whole]
                result += whole
            case "new":
                result.append(1)
            case "shrink":
                parts.append(shrunk(e, s, dims[len(parts)]))
            case _:
                parts.append(ranged(e, s, dims[len(parts)], declared[len(result)]))
                result.append(parts[-1].count)
    return parts, result


def shrunk(e: Emitter, s: SliceEntry, n: int) -> Part:
    """Return one element; a negative index counts from the end."""
    require(s.stride > 0, "an axis that is taken at one place has a negative stride")
    place = as_int(s.begin)
    if place is None:
        return Part(0, 1) if n == 1 else Part(from_start(e, s.begin, n), 1)
    require(-n <= place < n, f"element {place} is taken from {n}")
    return Part(place % n, 1)


def from_start(e: Emitter, place: Value, n: int) -> Value:
    """Return an index that counts from the end if it is negative."""
    index = e.cast(place, I32)
    return e.select(e.arithmetic("greater", e.splat(0, index), index), e.sum(index, e.splat(n, index)), index)


def ranged(e: Emitter, s: SliceEntry, n: int, declared: int | None) -> Part:
    """Return the part of a range, as in Python's slices. With a start that is known only at run time, all elements must be
    inside the axis."""
    start, stop = as_int(s.begin), as_int(s.end)
    if (s.begin_masked or start is not None) and (s.end_masked or stop is not None):
        found = range(n)[slice(None if s.begin_masked else start, None if s.end_masked else stop, s.stride)]
        return Part(found.start if found else 0, len(found), s.stride)
    length = None if s.begin_masked or s.end_masked else distance(e, s.begin, s.end)
    count = declared if length is None else max(0, -(-length // s.stride))
    if count is None:
        raise Problem("how many elements the slice takes must be known when compiling", kind="shape",
                      help="its ends may be known at run time only where they lie at a fixed distance, as in x[i:i+2]")
    if s.begin_masked or start is not None:
        first = range(n)[slice(None if s.begin_masked else start, None, s.stride)]
        require(count <= len(first), f"{count} elements are taken from {n}")
        return Part(first.start if first else 0, count, s.stride)
    return Part(from_start(e, s.begin, n), count, s.stride)


@legalization("tf.StridedSlice")
def strided_slice(e: Emitter, operation: Operation, x: Value, begin: Value, end: Value, strides: Value) -> Value:
    parts, dims = strided(e, operation, specs(e, operation, begin, end, strides), x.tensor.dims)
    return e.reshape(taken(e, x, parts), dims)
