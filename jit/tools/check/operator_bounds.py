"""How far one operation of a source may be from its reference on the same operands.

Integers must be equal, or as many steps off as the operation's rounding allows. Floats may differ by a part of the result's
range (`PART`), and by what rounding does to this operation on these operands: it is computed again from operands that are off
by a unit of the last place, and may be a few times as far as that brings it. So the bound is wide where terms cancel.
Operators that round nothing (`EXACT`) must be equal.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....lowering.dialects.tf.values import TensorList
from ....lowering.graph.types import Array

PART = {"float32": 2e-6, "float16": 2.0**-9, "bfloat16": 2.0**-6, "complex64": 2e-6, "float64": 2e-6}
"""Part of a result's largest magnitude that functions of other systems may differ by."""
DRAWS, ROOM = 6, 8.0
TINY = 1e-30
"""Numbers below are flushed by some systems."""
EXACT = frozenset({
    "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Rint", "Relu", "Relu6", "Maximum", "Minimum", "Max", "Min", "Select",
    "SelectV2", "Where", "Clip", "ClipByValue", "MaxPool", "GatherV2", "Gather", "GatherNd", "GatherND", "GatherElements",
    "ConcatV2", "Concat", "Pack", "Stack", "Unpack", "Split", "SplitV", "StridedSlice", "Slice", "Pad", "PadV2", "MirrorPad",
    "Transpose", "Reshape", "Squeeze", "ExpandDims", "Unsqueeze", "Tile", "BroadcastTo", "Expand", "ReverseV2", "Identity",
    "Flatten", "SpaceToDepth", "DepthToSpace", "SpaceToBatchND", "BatchToSpaceND", "ReduceMax", "ReduceMin", "OneHot", "Roll"})
"""Operators that copy, choose and round to integers, by their names without a dialect's."""
Compute = Callable[[Sequence[Any]], "Sequence[Any] | None"]


def wrong_elements(name: str, actual: Array, expected: Array, number: int, operands: Sequence[Any], compute: Compute,
                   steps: int) -> Array:
    """Where result `number` of the operator `name` is farther from `expected` than its bound; `compute` is the reference."""
    if actual.dtype.kind in "iub":
        return np.asarray(np.abs(actual.astype(np.int64) - expected.astype(np.int64)) > steps if steps else actual != expected)
    with np.errstate(all="ignore"):
        is_exact = name.rpartition(".")[2] in EXACT
        wrong = ~near(actual, expected, 0.0 if is_exact else floor_of(expected))
        if not wrong.any() or is_exact:
            return wrong
        allowed, jumps = spread(expected, number, operands, compute)
        return wrong & ~jumps & ~near(actual, expected, floor_of(expected) + allowed)


def floor_of(expected: Array) -> float:
    """What any two systems may differ by."""
    finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
    return PART.get(expected.dtype.name, 0.1) * float(finite.max(initial=0.0)) + TINY


def near(actual: Array, expected: Array, distance: Any) -> Array:
    """Where two results are equal, both are no number, or they are within a distance."""
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    a, e = actual.astype(wide), expected.astype(wide)
    return np.asarray((a == e) | (np.isnan(a) & np.isnan(e)) | (np.abs(a - e) <= distance))


def spread(expected: Array, number: int, operands: Sequence[Any], compute: Compute) -> tuple[Array, Array]:
    """How far operands that are off by a unit of the last place bring each element, and which then are no number."""
    far, jumps = np.zeros(expected.shape), np.zeros(expected.shape, bool)
    for other in drawn(number, operands, compute):
        if other.shape != expected.shape:
            return far, np.ones(expected.shape, bool)
        moved = np.abs(other.astype(expected.dtype) - expected).astype(np.float64)
        same = near(other, expected, 0.0)
        jumps |= ~same & ~np.isfinite(moved)
        far = np.maximum(far, np.where(same | ~np.isfinite(moved), 0.0, moved))
    return ROOM * far, jumps


def drawn(number: int, operands: Sequence[Any], compute: Compute) -> list[Array]:
    """The result for operands off by a unit of the last place."""
    random, found = np.random.default_rng(number), []
    for _ in range(DRAWS):
        results = compute([off(x, random) for x in operands])
        if results is not None:
            found.append(plain(results[number]))
    return found


def is_float(x: Any) -> bool:
    return (isinstance(x, np.ndarray) and x.dtype.kind not in "iubOUSV") or isinstance(x, TensorList)


def off(x: Any, random: np.random.Generator) -> Any:
    if isinstance(x, TensorList):
        return x.replaced(tuple(off(item, random) for item in x.items))
    if isinstance(x, tuple):
        return tuple(off(item, random) for item in x)
    if not is_float(x):
        return x
    part = np.finfo(x.dtype).eps if x.dtype.kind in "fc" else 2.0**-7
    with np.errstate(all="ignore"):
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        return (wide * (1 + part * random.uniform(-1, 1, x.shape))).astype(x.dtype)


def plain(datum: Any) -> Array:
    """A result as one array; a list of tensors with zeros for those that were never set."""
    if isinstance(datum, TensorList):
        shape = tuple(max(n, 0) for n in datum.shape)
        items = [np.zeros(shape, datum.dtype) if x is None else x for x in datum.items]
        return np.stack(items) if items else np.zeros((0, *shape), datum.dtype)
    return np.asarray(datum)
