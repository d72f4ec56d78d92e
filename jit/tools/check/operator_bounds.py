"""Error bounds of one operation of a source against its reference on the same operands.

Integers must be equal, or within as many steps as the operation's rounding allows. Floats may differ by a fraction of the
result's range (`PART`), and by the effect of rounding on this operation with these operands: it is computed again from operands
that are off by a unit of the last place, and the bound is a few times the resulting change. So the bound is wide where terms
cancel. Operators that round nothing (`EXACT`) must be equal.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....lowering.dialects.tf.values import TensorList
from ....lowering.graph.types import Array

PART = {"float32": 2e-6, "float16": 2.0**-9, "bfloat16": 2.0**-6, "complex64": 2e-6, "float64": 2e-6}
"""Fraction of a result's largest magnitude by which functions of other systems may differ."""
DRAWS, ROOM = 6, 8.0
TINY = 1e-30
"""Magnitude below which some systems flush numbers."""
EXACT = frozenset({
    "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Rint", "Relu", "Relu6", "Maximum", "Minimum", "Max", "Min", "Select",
    "SelectV2", "Where", "Clip", "ClipByValue", "MaxPool", "GatherV2", "Gather", "GatherNd", "GatherND", "GatherElements",
    "ConcatV2", "Concat", "Pack", "Stack", "Unpack", "Split", "SplitV", "StridedSlice", "Slice", "Pad", "PadV2", "MirrorPad",
    "Transpose", "Reshape", "Squeeze", "ExpandDims", "Unsqueeze", "Tile", "BroadcastTo", "Expand", "ReverseV2", "Identity",
    "Flatten", "SpaceToDepth", "DepthToSpace", "SpaceToBatchND", "BatchToSpaceND", "ReduceMax", "ReduceMin", "OneHot", "Roll"})
"""Operators that copy, select and round to integers, by their names without a dialect's."""
Compute = Callable[[Sequence[Any]], "Sequence[Any] | None"]


def wrong_elements(name: str, actual: Array, expected: Array, number: int, operands: Sequence[Any], compute: Compute,
                   steps: int) -> Array:
    """Return a mask of the elements of result `number` of the operator `name` that are farther from `expected` than their
    bound; `compute` is the reference."""
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
    """Return the distance by which any two systems may differ."""
    finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
    return PART.get(expected.dtype.name, 0.1) * float(finite.max(initial=0.0)) + TINY


def near(actual: Array, expected: Array, distance: Any) -> Array:
    """Return a mask of the elements that are equal, both NaN, or within a distance."""
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    a, e = actual.astype(wide), expected.astype(wide)
    return np.asarray((a == e) | (np.isnan(a) & np.isnan(e)) | (np.abs(a - e) <= distance))


def spread(expected: Array, number: int, operands: Sequence[Any], compute: Compute) -> tuple[Array, Array]:
    """Return how far each element moves for operands that are off by a unit of the last place, and which elements become NaN or
    infinite."""
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
    """Return the results for operands that are off by a unit of the last place."""
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
    """Return a result as one array; a list of tensors with zeros for those that were never set."""
    if isinstance(datum, TensorList):
        shape = tuple(max(n, 0) for n in datum.shape)
        items = [np.zeros(shape, datum.dtype) if x is None else x for x in datum.items]
        return np.stack(items) if items else np.zeros((0, *shape), datum.dtype)
    return np.asarray(datum)
