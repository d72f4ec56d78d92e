"""A random array that a function can take: in range if it is used as indices, small enough not to overflow soon. `check` and
the command line make one for each input or variable without values from the user.
"""
from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...lowering.graph.graph import Block, Function, Operation, Value
from ...lowering.graph.shape_options import shape_options
from ...lowering.graph.types import F8E8M0, MXINT8, Array, TensorType
from ...runtime.errors import Problem
from .steered_loops import steers_a_loop

LAYOUT = frozenset({"tosa.reshape", "tosa.transpose", "tosa.identity", "tosa.slice", "tosa.tile", "tosa.concat",
                    "tosa.reverse", "tosa.cast", "tosa.select"})
"""Operators that pass indices on: also a select, which counts negative ones from the end."""

LARGEST = 100
"""Random i32 and i64 are from minus this to this: larger numbers overflow soon."""


SEED_BITS = (1 << 64) - 1
"""Mask of a seed's bits: NumPy takes no seed below 0."""


MOST_STEERED = 8
"""Maximum of random integers, from 1, that a loop's condition depends on: they may be its trip count."""


def random_array(function: Function, value: Value, number: int, seed: int) -> Array:
    """Return normal floats; all values of narrow integers; indices that are in range where they are used; small numbers where
    they may be the trip count of a loop."""
    type, generator = value.tensor, np.random.default_rng([seed & SEED_BITS, number])
    if not type.is_static:
        raise Problem(f"input {value.name} is {type}, whose shape is not known", value.position, kind="shape",
                      help=f"{shape_options(function)} gives it, or an array for the input does")
    element = type.element
    if element == F8E8M0:  # powers of two
        return np.ldexp(1.0, generator.integers(-4, 5, type.dims)).astype(element.dtype)
    if element == MXINT8:
        return generator.integers(-128, 128, type.dims).astype(element.dtype)
    if element.is_float:
        return generator.standard_normal(type.dims).astype(element.dtype)
    if element.kind == "bool":
        return generator.integers(0, 2, type.dims).astype(np.bool_)
    extent = index_extent(function, value)
    if extent is not None:
        return indices(generator, type, extent)
    if steers_a_loop(function, value):
        return generator.integers(1, min(MOST_STEERED, element.maximum), type.dims, endpoint=True).astype(element.dtype)
    low, high = (element.minimum, element.maximum) if element.bits < 32 else (-LARGEST, LARGEST)
    return generator.integers(max(low, element.minimum), high, type.dims, endpoint=True).astype(element.dtype)


def indices(generator: np.random.Generator, type: TensorType, extent: int) -> Array:
    """Return indices below `extent`; distinct ones in a row if there are enough, as SCATTER requires."""
    width = type.dims[-1] if type.rank else 1
    if width > extent:
        return generator.integers(0, extent, type.dims).astype(type.element.dtype)
    rows = [generator.choice(extent, width, replace=False) for _ in range(type.size // width)]
    return np.asarray(rows, type.element.dtype).reshape(type.dims)


def index_extent(function: Function, value: Value) -> int | None:
    """Return the least extent that the elements of `value` index, if GATHER or SCATTER reads them; None otherwise."""
    followed, extents = {value}, []
    for operation in function.body.walk():
        name = operation.op.name
        given = operation.operands[1:] if name == "tosa.select" else operation.operands
        if name in LAYOUT and any(v in followed for v in given):
            followed.update(operation.results)
        if name in ("tosa.gather", "tosa.scatter") and operation.operands[1] in followed:
            extents.append(operation.operands[0].tensor.dims[1])
        for region, argument in passed(operation):
            if operation.operands[argument] in followed:
                first = argument - (name == "tosa.cond_if")
                followed.add(region.arguments[first])
    return min(extents, default=None)


def passed(operation: Operation) -> Iterable[tuple[Block, int]]:
    """Yield regions, and the operands that are their arguments."""
    first = int(operation.op.name == "tosa.cond_if")
    return [(region, number) for region in operation.regions for number in range(first, len(operation.operands))]
