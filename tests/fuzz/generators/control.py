"""Recipes of control flow and state: cond_if, while_loop, variable reads and writes."""
from __future__ import annotations

import numpy as np
from tosaic.lowering.graph.graph import Block, Value
from tosaic.lowering.graph.types import BF16, F16, F32, I1, I8, I16, I32, I64, TensorType

from .data import array
from .layout import slice_of
from .maker import Maker, Recipe

STATES = (F32, I8, I32, F16, I16, I1, I64, BF16)
DEEPEST = 2
LARGE = 1500
"""Values of more elements are not carried around loops."""


def grow(m: Maker, size: int) -> None:
    """Some operators, of any kind."""
    from .functions import step
    for _ in range(size):
        step(m)


def condition(m: Maker) -> Value:
    """One bool."""
    found = [v for v in m.pool if v.tensor.element == I1 and v.tensor.size == 1]
    if found and m.chance(0.6):
        return m.newest(found)
    if m.chance(0.4):
        x = m.pick((I32, F32), fits=lambda t: t.rank > 0)
        one = m.op("slice", x, m.shape(*[0] * x.tensor.rank), m.shape(*[1] * x.tensor.rank))
        return m.op("greater", one, m.exactly(one.tensor)) if m.chance(0.5) else m.op("greater_equal", one, one)
    return m.fresh(TensorType(m.rng.choice(((), (1,), (1, 1))), I1), constant=0.1)


def conditional(m: Maker) -> None:
    if m.depth >= DEEPEST:
        return
    chosen = condition(m)
    operands = [m.newest(m.pool) for _ in range(m.rng.randint(0, 3))]
    then = region(m, operands)
    grow(then, m.rng.randint(1, 4))
    yields = [then.newest(then.pool) for _ in range(m.rng.randint(1, 3))]
    otherwise = region(m, operands)
    grow(otherwise, m.rng.randint(0, 3))
    others = [otherwise.exactly(v.tensor) for v in yields]
    m.ops("cond_if", chosen, *operands, regions=(then.finish(*yields), otherwise.finish(*others)))


def region(m: Maker, operands: list[Value]) -> Maker:
    inner = Maker(m.program, [v for v in m.pool if m.chance(0.5)], m.depth + 1)
    inner.pool += [inner.argument(v.type, f"{inner._prefix}a{i}") for i, v in enumerate(operands)]
    return inner


def loop(m: Maker) -> None:
    """A while_loop that a counter ends; what else it carries may change places."""
    if m.depth >= DEEPEST:
        return
    shape = m.rng.choice(((), (1,)))
    counter = TensorType(shape, I32)
    start = m.constant(np.full(shape, m.rng.randint(-1, 1), np.int32))
    limit = bounded(m, counter) if m.chance(0.5) else m.constant(np.full(shape, m.rng.randint(0, 3), np.int32))
    found = [v for v in m.pool if v.tensor.size <= LARGE]
    carried = [m.newest(found) for _ in range(m.rng.randint(1, 3))] if found else []
    operands = [start, *carried]
    m.ops("while_loop", *operands, regions=(test_of(m, operands, limit), body_of(m, operands)))


def bounded(m: Maker, counter: TensorType) -> Value:
    """A number of iterations that comes from data: at most 4."""
    x = m.exactly(counter, constant=0.1)
    low, high = (m.constant(np.full(counter.dims, n, np.int32)) for n in (-1, 4))
    return m.op("minimum", m.op("maximum", x, low), high)


def test_of(m: Maker, operands: list[Value], limit: Value) -> Block:
    inner = region(m, operands)
    count = inner.pool[-len(operands)]
    if inner.chance(0.3):
        grow(inner, 1)
    going = inner.op("greater", limit, count)
    if inner.chance(0.3):
        going = inner.op("logical_and", going, inner.op("reshape", condition(inner), inner.shape(*going.tensor.dims)))
    return inner.finish(going)


def body_of(m: Maker, operands: list[Value]) -> Block:
    inner = region(m, operands)
    count, *values = inner.pool[-len(operands):]
    grow(inner, inner.rng.randint(1, 4))
    following = inner.op("add", count, np.full(count.tensor.dims, 1, np.int32))
    yields = []
    for value in values:
        alike = [v for v in inner.pool if v.type == value.type]
        yields.append(inner.newest(alike) if inner.chance(0.8) else inner.exactly(value.tensor))
    return inner.finish(following, *yields)


# ---- state -------------------------------------------------------------------------------------------------------
def declared(m: Maker, type: TensorType) -> str:
    """A variable of that type: one that there is, or a new one."""
    found = [symbol for symbol, t, _ in m.program.variables if t == type]
    if found and m.chance(0.6):
        return m.rng.choice(found)
    symbol = f"v{len(m.program.variables)}"
    initial = array(m.rng, type, m.program.mood) if m.chance(0.96) else None
    m.program.variables.append((symbol, type, initial))
    return symbol


def read(m: Maker) -> None:
    if m.program.variables and m.chance(0.6):
        symbol, type, _ = m.rng.choice(m.program.variables)
    else:
        type = TensorType(m.dims(most=500), m.rng.choice(STATES))
        symbol = declared(m, type)
    m.pool.append(m.read(symbol, type))


def write(m: Maker) -> None:
    if m.program.variables and m.chance(0.6):
        symbol, type, _ = m.rng.choice(m.program.variables)
        value = m.exactly(type)
    else:
        value = m.pick(STATES)
        symbol = declared(m, value.tensor)
    m.write(symbol, value)


def shift(m: Maker) -> None:
    """A state that new rows shift through, as in a streaming model."""
    x = m.pick(STATES, fits=lambda t: t.rank > 0)
    axis = m.rng.randrange(x.tensor.rank)
    kept = m.rng.choice((1, 2, 3, 4))
    symbol = declared(m, x.tensor.with_dim(axis, kept))
    state = m.read(symbol, x.tensor.with_dim(axis, kept))
    m.pool.append(state)
    joined = m.op("concat", state, x, axis=axis) if m.chance(0.7) else m.op("concat", x, state, axis=axis)
    start = [0] * x.tensor.rank
    start[axis] = m.rng.choice((0, joined.tensor.dims[axis] - kept, joined.tensor.dims[axis] - kept))
    later = m.op("slice", joined, m.shape(*start), m.shape(*state.tensor.dims))
    if m.chance(0.2):
        slice_of(m, joined)
    m.write(symbol, later)


RECIPES: dict[str, Recipe] = {"cond_if": conditional, "while_loop": loop, "variable_read": read, "variable_write": write,
                              "state shift": shift}
