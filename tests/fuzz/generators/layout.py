"""Recipes of the layout operators, one by one and in chains, of gathers and scatters."""
from __future__ import annotations

import math

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I1, I8, I16, I32, I48, I64, TensorType

from .maker import Maker, Recipe

ANY = (I1, I8, I16, I32, I48, I64, F16, BF16, F32, F8E4M3, F8E5M2)


def reshape(m: Maker, x: Value) -> Value:
    dims = list(m.regrouped(x.tensor.dims, m.rng.randint(0 if x.tensor.size == 1 else 1, 6)))
    if dims and m.chance(0.2):
        dims[m.rng.randrange(len(dims))] = -1
    return m.op("reshape", x, m.shape(*dims))


def transpose(m: Maker, x: Value) -> Value:
    return m.op("transpose", x, perms=tuple(m.rng.sample(range(x.tensor.rank), x.tensor.rank)))


def reverse(m: Maker, x: Value) -> Value:
    return m.op("reverse", x, axis=m.rng.randrange(x.tensor.rank))


def slice_of(m: Maker, x: Value) -> Value:
    starts, sizes = [], []
    for n in x.tensor.dims:
        size = n if m.chance(0.5) else m.rng.randint(1, n)
        sizes.append(size)
        starts.append(m.rng.randint(0, n - size))
    return m.op("slice", x, m.shape(*starts), m.shape(*sizes))


def pad(m: Maker, x: Value) -> Value:
    numbers = [m.rng.randint(0, 3) if m.chance(0.35) else 0 for _ in range(2 * x.tensor.rank)]
    size = math.prod(n + a + b for n, a, b in zip(x.tensor.dims, numbers[::2], numbers[1::2]))
    if size > m.program.most:
        numbers = [0] * len(numbers)
    value = m.fresh(TensorType((1,), x.tensor.element), constant=0.7)
    return m.op("pad", x, m.shape(*numbers), value)


def tile(m: Maker, x: Value) -> Value:
    multiples = [m.rng.randint(1, 3) if m.chance(0.4) else 1 for _ in x.tensor.dims]
    while math.prod(multiples) * x.tensor.size > m.program.most and math.prod(multiples) > 1:
        multiples[max(range(len(multiples)), key=lambda d: multiples[d])] = 1
    return m.op("tile", x, m.shape(*multiples))


def concat(m: Maker, x: Value) -> Value:
    axis = m.rng.randrange(x.tensor.rank)
    rest = x.tensor.size // x.tensor.dims[axis]
    parts, total = [x], x.tensor.dims[axis]
    for _ in range(m.rng.randint(1, 3)):
        beside = [v for v in m.pool if v.tensor.element == x.tensor.element and v.tensor.rank == x.tensor.rank
                  and v.tensor.with_dim(axis, 1) == x.tensor.with_dim(axis, 1)]
        if m.chance(0.25):
            part = m.exactly(x.tensor.with_dim(axis, m.rng.choice((1, 2, 5))))
        else:
            part = m.newest(beside or [x])
        if (total + part.tensor.dims[axis]) * rest > m.program.most:
            break
        total += part.tensor.dims[axis]
        parts.append(part)
    m.rng.shuffle(parts)
    return m.op("concat", *parts, axis=axis)


LAYOUTS = {"reshape": reshape, "transpose": transpose, "reverse": reverse, "slice": slice_of, "pad": pad, "tile": tile,
           "concat": concat}


def single(name: str) -> Recipe:
    def recipe(m: Maker) -> None:
        LAYOUTS[name](m, m.pick(ANY, fits=lambda t: t.rank > 0 or name == "reshape"))

    return recipe


def chain(m: Maker) -> None:
    """Layout operators of one another, in any order."""
    x = m.pick(ANY, fits=lambda t: t.rank > 0)
    for _ in range(m.rng.randint(2, 5)):
        if x.tensor.rank:
            x = LAYOUTS[m.rng.choice(list(LAYOUTS))](m, x)


def gather(m: Maker) -> None:
    values = m.pick(ANY, 3)
    batch, rows, _ = values.tensor.dims
    places = m.rng.choice((1, 2, 5, 9))
    type = TensorType((batch, places), m.rng.choice((I32, I64)))
    m.op("gather", values, m.exactly(type, (0, rows - 1) if m.chance(0.8) else (-3, rows + 3), 0.4))


def row_gather(m: Maker) -> None:
    values = m.pick(ANY, 3)
    batch, rows, channels = values.tensor.dims
    places, count = m.rng.choice((1, 2, 5)), m.rng.choice((1, 2, 3, rows))
    if batch * places * count * channels > m.program.most:
        return
    type = TensorType((batch, places), m.rng.choice((I32, I64)))
    span = (0, max(rows - count, 0)) if m.chance(0.8) else (-3, rows + 3)
    m.op("row_gather", values, m.exactly(type, span, 0.4), m.constant(np.array([count], np.int32)))


def scatter(m: Maker) -> None:
    values = m.pick(ANY, 3)
    batch, rows, channels = values.tensor.dims
    places = m.rng.randint(1, rows)
    type = TensorType((batch, places), m.rng.choice((I32, I64)))
    if m.chance(0.5):
        chosen = np.array([m.rng.sample(range(rows), places) for _ in range(batch)]).astype(type.element.dtype)
        indices = m.constant(chosen)
    else:
        indices = m.exactly(type, (-1, rows), 0.2)
    m.op("scatter", values, indices, m.exactly(values.tensor.with_shape((batch, places, channels))))


def identities(m: Maker) -> None:
    """Several values handed on together, as a split is."""
    m.ops("identityn", *(m.pick(ANY) for _ in range(m.rng.randint(1, 4))))


RECIPES: dict[str, Recipe] = {**{name: single(name) for name in LAYOUTS}, "layout chain": chain, "gather": gather,
                              "row_gather": row_gather, "scatter": scatter, "identityn": identities}
