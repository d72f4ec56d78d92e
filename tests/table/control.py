"""Generators of COND_IF, WHILE_LOOP and of the operators of variables: what they carry is moved, so that any type does."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tosaic.lowering.dialects.tosa.data import Const
from tosaic.lowering.graph.graph import Block, Value
from tosaic.lowering.graph.types import I1, I32, TensorType

from ..fuse.graphs import Graph
from .combinations import Types
from .data import array
from .draft import Draft
from .elementwise import Generator


def listed(d: Draft, types: Types, most: int = 300) -> list[Value]:
    """Tensors of the type, of which the first two are of one shape."""
    dims = d.dims_of(types[0], most=most)
    found = [d.tensor(types[0], dims), d.tensor(types[0], dims)]
    found += [d.tensor(types[0], d.dims_of(types[0], most=most)) for _ in range(d.choice(0, 0, 1, 3))]
    return found


def moved(d: Draft, g: Graph, x: Value) -> Value:
    """x, or x turned round along an axis."""
    if x.tensor.rank and d.chance(0.7):
        return g.op("reverse", x, axis=d.rng.randrange(x.tensor.rank))
    return g.op("identity", x) if d.chance(0.5) else x


def conditional(d: Draft, types: Types) -> Sequence[Value]:
    """Branches that exchange and turn what they are given; some of it comes from outside, not through the list."""
    values = listed(d, types)
    chosen = d.tensor(I1, (1,) * d.rng.randint(0, 6), constant=0.2)
    captured = d.chance(0.4)
    return d.ops("cond_if", chosen, *([] if captured else values),
                 regions=[branch(d, f"{name}_", values, captured) for name in ("then", "else")])


def branch(d: Draft, prefix: str, values: Sequence[Value], captured: bool) -> Block:
    inner = Graph(prefix)
    own = list(values) if captured else [inner.argument(v.type, f"{prefix}a{i}") for i, v in enumerate(values)]
    if d.chance(0.5):
        own[:2] = reversed(own[:2])
    return inner.finish(*(moved(d, inner, v) for v in own))


def loop(d: Draft, types: Types) -> Sequence[Value]:
    """A counter up to a number that is data, and tensors that change places in each iteration."""
    values = listed(d, types)
    dims = (1,) * d.rng.randint(0, 6)
    count, limit = (d.tensor(I32, dims, span, 0.3) for span in ((0, 1), (-1, 4)))
    if d.hostile:
        limit = d.constant(np.zeros(dims, np.int32))
    carried = [count, limit, *values]
    test, body = Graph("test_"), Graph("body_")
    arguments = [[g.argument(v.type, f"{g._prefix}a{i}") for i, v in enumerate(carried)] for g in (test, body)]
    going = test.op("greater", arguments[0][1], arguments[0][0])
    following, last, *rest = arguments[1]
    rest[:2] = reversed(rest[:2])
    one = body.add(Const(np.ones(dims, np.int32), I32))[0]
    following = body.op("add", following, one)
    yields = [following, last, *(moved(d, body, v) for v in rest)]
    return d.ops("while_loop", *carried, regions=(test.finish(going), body.finish(*yields)))


def declared(d: Draft, types: Types, initial: bool) -> tuple[str, TensorType]:
    type = TensorType(d.dims_of(types[0], most=300), types[0])
    symbol = f"state{len(d.variables)}"
    d.variables.append((symbol, type, array(d.rng, type, d.mood) if initial else None))
    return symbol, type


def variable(d: Draft, types: Types) -> Sequence[Value]:
    """Its initial value is what the first call reads."""
    symbol, type = declared(d, types, True)
    return [d.read(symbol, type)]


def variable_read(d: Draft, types: Types) -> Sequence[Value]:
    """What the call before has written, then what this one has."""
    symbol, type = declared(d, types, True)
    before = d.read(symbol, type)
    d.write(symbol, d.op("reverse", before, axis=0) if type.rank else before)
    return [before, d.read(symbol, type)]


def variable_write(d: Draft, types: Types) -> Sequence[Value]:
    """A state that holds nothing before it is written."""
    symbol, type = declared(d, types, d.chance(0.5))
    x = d.tensor(types[0], type.dims)
    d.write(symbol, x)
    return [d.read(symbol, type)] if d.chance(0.7) else [x]


GENERATORS: dict[str, Generator] = {
    "cond_if": conditional, "while_loop": loop, "variable": variable, "variable_read": variable_read,
    "variable_write": variable_write}
