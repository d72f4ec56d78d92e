"""Generators of the data layout operators, of GATHER and SCATTER, CONST and CONST_SHAPE."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I8, BlockScaled, ElementType

from .combinations import Types
from .draft import Dims, Draft
from .elementwise import Generator


def concat(d: Draft, types: Types) -> Sequence[Value]:
    """Some tensors, the same one several times among them; now and then very many."""
    dims, unit = d.dims_of(types[0], 1, most=d.most // 3), unit_of(types[0])
    axis = d.rng.randrange(len(dims))
    count = d.choice(1, 2, 3, 4, 5, 63) if math.prod(dims) < 60 else d.choice(1, 2, 3)
    parts = [d.tensor(types[0], dims)]
    for _ in range(count - 1):
        extent = d.choice(dims[axis], 1, 2, 7)
        if axis == len(dims) - 1 and extent % unit:
            extent = unit * d.choice(1, 2)
        parts.append(d.choice(*parts[:4]) if d.chance(0.2) or len(parts) > 6 else
                     d.tensor(types[0], (*dims[:axis], extent, *dims[axis + 1:])))
    d.rng.shuffle(parts)
    return [d.op("concat", *parts, axis=axis)]


def unit_of(element: ElementType) -> int:
    """What the last extent must be a multiple of."""
    return element.block if isinstance(element, BlockScaled) else 1


def pad(d: Draft, types: Types) -> Sequence[Value]:
    dims = d.dims_of(types[0], 1, most=200)
    while True:
        numbers = [d.choice(0, 1, 2, n, 2 * n + 1, 17) if d.chance(0.4) else 0 for n in dims for _ in "ab"]
        if math.prod(n + a + b for n, a, b in zip(dims, numbers[::2], numbers[1::2])) <= d.most:
            break
    return [d.op("pad", d.tensor(types[0], dims), d.shape(*numbers), d.tensor(types[0], (1,), constant=0.6))]


def reshape(d: Draft, types: Types) -> Sequence[Value]:
    """Another shape with as many elements, -1 for an extent now and then."""
    source, unit = d.dims_of(types[0]), unit_of(types[0])
    target = list(redistributed(d, math.prod(source), unit))
    if target and d.chance(0.15):
        target[d.rng.randrange(len(target))] = -1
    return [d.op("reshape", d.tensor(types[0], source), d.shape(*target))]


def redistributed(d: Draft, size: int, unit: int = 1) -> Dims:
    """A shape of `size` elements, its last extent a multiple of `unit`."""
    primes = factors(size // unit)
    rank = d.rng.randint(0 if size == 1 else 1, 6)
    target = [1] * (rank - 1) + [unit] * (rank > 0)
    for p in primes:
        target[d.rng.randrange(rank)] *= p
    return tuple(target)


def factors(n: int) -> list[int]:
    """The prime factors of n."""
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return found


def reverse(d: Draft, types: Types) -> Sequence[Value]:
    dims = d.dims_of(types[0], 1)
    return [d.op("reverse", d.tensor(types[0], dims), axis=d.rng.randrange(len(dims)))]


def slicing(d: Draft, types: Types) -> Sequence[Value]:
    dims, units = d.dims_of(types[0], 1), [1] * 6
    units[len(dims) - 1] = unit_of(types[0])
    sizes = [u * d.choice(n // u, d.integer(1, n // u)) for n, u in zip(dims, units)]
    starts = [u * d.integer(0, (n - size) // u) for n, size, u in zip(dims, sizes, units)]
    return [d.op("slice", d.tensor(types[0], dims), d.shape(*starts), d.shape(*sizes))]


def tile(d: Draft, types: Types) -> Sequence[Value]:
    dims = d.dims_of(types[0], 1, most=d.most // 4)
    while True:
        times = [d.choice(1, 1, 2, 3, 9) for _ in dims]
        if math.prod(times) * math.prod(dims) <= d.most:
            return [d.op("tile", d.tensor(types[0], dims), d.shape(*times))]


def transpose(d: Draft, types: Types) -> Sequence[Value]:
    """The axes in any order, often only the last two exchanged, or rotated."""
    dims = d.dims_of(types[0], 1)
    order = list(range(len(dims) - (unit_of(types[0]) > 1)))
    match d.choice("any", "any", "last", "rotated", "same"):
        case "any":
            d.rng.shuffle(order)
        case "last":
            order[-2:] = reversed(order[-2:])
        case "rotated":
            order = order[1:] + order[:1]
    order += range(len(order), len(dims))  # the axis of blocks stays the last
    return [d.op("transpose", d.tensor(types[0], dims), perms=tuple(order))]


# ---- gather and scatter ------------------------------------------------------------------------------------------
def gather(d: Draft, types: Types) -> Sequence[Value]:
    batch, rows, channels = d.dims_of(types[1], 3, 3)
    places = min(d.choice(1, 2, 5, 9, 33), max(1, d.most // (batch * channels)))
    return [d.op("gather", d.tensor(types[1], (batch, rows, channels)), d.index(types[0], (batch, places), rows))]


def row_gather(d: Draft, types: Types) -> Sequence[Value]:
    """All the rows that an index names are inside."""
    dims = d.dims_of(types[1], 3, 3)
    return [d.op("row_gather", d.tensor(types[1], dims), *rows_of(d, types[0], dims))]


def rows_of(d: Draft, index: ElementType, dims: Dims) -> tuple[Value, Value]:
    """Indices and the number of rows that each of them takes."""
    batch, rows, channels = dims
    count = d.integer(1, min(rows, 5))
    places = min(d.choice(1, 2, 5, 9), max(1, d.most // (batch * channels * count)))
    return d.index(index, (batch, places), rows - count + 1), d.constant(np.array([count], np.int32))


def scatter(d: Draft, types: Types) -> Sequence[Value]:
    """Each row is written at most once."""
    batch, rows, channels = d.dims_of(types[1], 3, 3, most=1000)
    places = d.choice(rows, 1, d.rng.randint(1, rows))
    dims: Dims = (batch, places)
    if d.hostile:
        indices = d.tensor(types[0], dims, constant=0.3)
    else:
        chosen = [d.rng.sample(range(rows), places) for _ in range(batch)]
        indices = d.given(np.array(chosen).astype(types[0].dtype), types[0], 0.3)
    return [d.op("scatter", d.tensor(types[1], (batch, rows, channels)), indices,
                 d.tensor(types[1], (batch, places, channels)))]


# ---- data --------------------------------------------------------------------------------------------------------
def const(d: Draft, types: Types) -> Sequence[Value]:
    return [d.tensor(types[0], d.dims_of(types[0]), constant=1.0)]


def const_shape(d: Draft, types: Types) -> Sequence[Value]:
    """A shape has no bytes of its own at run time: it is what a reshape makes of it."""
    dims = d.dims()
    return [d.op("reshape", d.tensor(I8, (math.prod(dims),)), d.shape(*dims))]


GENERATORS: dict[str, Generator] = {
    "concat": concat, "pad": pad, "reshape": reshape, "reverse": reverse, "slice": slicing, "tile": tile,
    "transpose": transpose, "gather": gather, "row_gather": row_gather, "scatter": scatter, "const": const,
    "const_shape": const_shape}
