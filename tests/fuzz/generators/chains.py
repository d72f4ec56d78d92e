"""Chains: one operator class as often as wanted, each operator on the result of the one before. What is linear in the operators
of a graph must show on them, and what is recursive ends on them.

Values stay small and exact: data are whole numbers or powers of two where that can be, so that a chain of thousands compares.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tosaic.lowering.dialects.tosaic.assertion import Assert
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BF16, F16, F32, I1, I8, I16, I32, Array, ElementType, TensorType

from ...fuse.graphs import Graph, zero
from ...fuse.graphs import module as module_of
from .functions import Case

Step = Callable[[Graph, Value], Value]
"""Adds a link to the chain. Its result has the type of what it is given."""


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


# ---- elementwise -----------------------------------------------------------------------------------------------------
def added(g: Graph, x: Value) -> Value:
    return g.op("add", x, np.full((1,) * x.tensor.rank, 1.5, np.float32))


def added_reversed(g: Graph, x: Value) -> Value:
    return g.op("sub", np.full((1,) * x.tensor.rank, 1.5, np.float32), x)


def scaled(g: Graph, x: Value, by: float) -> Value:
    return g.op("mul", x, np.full((1,) * x.tensor.rank, by, np.float32), zero("int8"))


def mixed(g: Graph, x: Value) -> Value:
    """x * 0.99 + 0.01 * x: as a tree, twice as large at each link."""
    return g.op("add", scaled(g, x, 0.99), scaled(g, x, 0.01))


def doubled(g: Graph, x: Value) -> Value:
    """x + x, and half of it."""
    return scaled(g, g.op("add", x, x), 0.5)


def squared(g: Graph, x: Value) -> Value:
    return g.op("clamp", g.op("sub", g.op("mul", x, x, zero("int8")), ones(*(1,) * x.tensor.rank)), min_val=-1.0, max_val=1.0,
                nan_mode="PROPAGATE")


def activation(g: Graph, x: Value) -> Value:
    return g.op("tanh", x)


def powers(g: Graph, x: Value) -> Value:
    return g.op("exp", g.op("negate", x, zero("float32"), zero("float32")))


def absolute(g: Graph, x: Value) -> Value:
    return g.op("abs", x)


def selected(g: Graph, x: Value) -> Value:
    return g.op("select", g.op("greater", x, np.zeros((1,) * x.tensor.rank, np.float32)), added_reversed(g, x), x)


def chosen(g: Graph, x: Value) -> Value:
    """A selection by a condition from outside."""
    return g.op("select", g.arguments[1], x, added_reversed(g, x))


# ---- types -----------------------------------------------------------------------------------------------------------
def cast_to(*elements: ElementType) -> Step:
    def step(g: Graph, x: Value) -> Value:
        for element in elements:
            x = g.op("cast", x, to=element)
        return x

    return step


def rescaled(g: Graph, x: Value, to: ElementType = I8, shift: int = 30) -> Value:
    zero_points = (np.zeros(1, x.tensor.element.storage), np.zeros(1, to.storage))
    return g.op("rescale", x, np.array([1 << 30], np.int32), np.array([shift], np.int8), *zero_points, scale32=True,
                rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=False, output_unsigned=False, to=to)


def quantized_sum(g: Graph, x: Value) -> Value:
    """What converters make of a sum of bytes."""
    wide = rescaled(g, x, I32)
    return rescaled(g, g.op("add", wide, wide), I8, 31)


def looked_up(g: Graph, x: Value) -> Value:
    return g.op("table", x, (np.arange(256) - 128)[::-1].astype(np.int8))


# ---- layout ----------------------------------------------------------------------------------------------------------
def reversed_(g: Graph, x: Value) -> Value:
    return g.op("reverse", x, axis=0)


def transposed(g: Graph, x: Value) -> Value:
    return g.op("transpose", x, perms=(1, 0))


def reshaped(g: Graph, x: Value) -> Value:
    rows, columns = x.tensor.dims
    return g.op("reshape", x, g.shape(columns, rows))


def reshaped_transposed(g: Graph, x: Value) -> Value:
    """Places that no affine index gives after some links."""
    return g.op("transpose", reshaped(g, x), perms=(1, 0))


def sliced(g: Graph, x: Value) -> Value:
    """All but the first row, with a row of zeros put behind."""
    rows, columns = x.tensor.dims
    rest = g.op("slice", x, g.shape(1, 0), g.shape(rows - 1, columns))
    return g.op("pad", rest, g.shape(0, 1, 0, 0), zero("float32"))


def concatenated(g: Graph, x: Value) -> Value:
    """Rows moved round by one."""
    rows, columns = x.tensor.dims
    first = g.op("slice", x, g.shape(0, 0), g.shape(1, columns))
    rest = g.op("slice", x, g.shape(1, 0), g.shape(rows - 1, columns))
    return g.op("concat", rest, first, axis=0)


def tiled(g: Graph, x: Value) -> Value:
    rows, columns = x.tensor.dims
    return g.op("slice", g.op("tile", x, g.shape(2, 1)), g.shape(1, 0), g.shape(rows, columns))


# ---- sums, products, windows ----------------------------------------------------------------------------------------
def reduced(g: Graph, x: Value) -> Value:
    """The greatest of each row, taken from it."""
    return g.op("sub", g.op("reduce_max", x, axis=1, nan_mode="PROPAGATE"), x)


def summed(g: Graph, x: Value) -> Value:
    return scaled(g, g.op("add", x, g.op("reduce_sum", x, axis=0)), 1 / 8)


def normalized(g: Graph, x: Value) -> Value:
    """A softmax."""
    e = g.op("exp", g.op("sub", x, g.op("reduce_max", x, axis=1, nan_mode="PROPAGATE")))
    return g.op("mul", e, g.op("reciprocal", g.op("reduce_sum", e, axis=1)), zero("int8"))


def multiplied(g: Graph, x: Value) -> Value:
    """By a permutation."""
    size = x.tensor.dims[-1]
    return g.op("matmul", x, np.roll(np.eye(size, dtype=np.float32), 1, 0)[None], zero("float32"), zero("float32"))


def multiplied_bytes(g: Graph, x: Value) -> Value:
    size = x.tensor.dims[-1]
    return rescaled(g, g.op("matmul", x, np.roll(np.eye(size, dtype=np.int8), 1, 0)[None], zero("int8"), zero("int8")))


def convolved(g: Graph, x: Value) -> Value:
    channels = x.tensor.dims[-1]
    weight = np.zeros((channels, 3, 3, channels), np.float32)
    weight[range(channels), 1, 2, range(channels)] = 1
    return g.op("conv2d", x, weight, np.full(channels, 0.5, np.float32), zero("float32"), zero("float32"), pad=(1, 1, 1, 1),
                stride=(1, 1), dilation=(1, 1), acc_type=F32)


def convolved_bytes(g: Graph, x: Value) -> Value:
    channels = x.tensor.dims[-1]
    weight = np.zeros((channels, 3, 3, channels), np.int8)
    weight[range(channels), 1, 2, range(channels)] = 1
    return rescaled(g, g.op("conv2d", x, weight, np.ones(channels, np.int32), zero("int8"), zero("int8"), pad=(1, 1, 1, 1),
                            stride=(1, 1), dilation=(1, 1), acc_type=I32))


def convolved_depthwise(g: Graph, x: Value) -> Value:
    channels = x.tensor.dims[-1]
    weight = np.zeros((3, 3, channels, 1), np.float32)
    weight[1, 0] = 1
    return g.op("depthwise_conv2d", x, weight, np.zeros(channels, np.float32), zero("float32"), zero("float32"),
                pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1), acc_type=F32)


def pooled(g: Graph, x: Value) -> Value:
    return g.op("max_pool2d", x, kernel=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1), nan_mode="PROPAGATE")


def averaged(g: Graph, x: Value) -> Value:
    return g.op("avg_pool2d", x, zero("float32"), zero("float32"), kernel=(2, 2), stride=(1, 1), pad=(0, 1, 0, 1), acc_type=F32)


# ---- places from data ------------------------------------------------------------------------------------------------
def gathered(g: Graph, x: Value) -> Value:
    return g.op("gather", x, g.arguments[1])


def followed(g: Graph, x: Value) -> Value:
    """Indices that are themselves gathered: each is where to look for the next."""
    rows = x.tensor.dims[1]
    table = g.op("reshape", g.arguments[1], g.shape(1, rows, 1))
    return g.op("reshape", g.op("gather", table, x), g.shape(1, rows))


def scattered(g: Graph, x: Value) -> Value:
    rows = x.tensor.dims[1]
    first = g.op("slice", g.arguments[1], g.shape(0, 0), g.shape(1, 1))
    return g.op("scatter", x, first, g.op("slice", x, g.shape(0, rows - 1, 0), g.shape(1, 1, x.tensor.dims[2])))


# ---- control flow and state ------------------------------------------------------------------------------------------
def branched(g: Graph, x: Value) -> Value:
    name = f"b{len(g.operations)}_"
    then, otherwise = Graph(f"{name}t"), Graph(f"{name}e")
    blocks = then.finish(added(then, x)), otherwise.finish(x)
    return g.op("cond_if", g.arguments[1], regions=blocks)


def looped(g: Graph, x: Value) -> Value:
    """Doubled until it is at least 1."""
    name = f"b{len(g.operations)}_"
    test, body = Graph(f"{name}t"), Graph(f"{name}b")
    value, again = test.argument(x.type), body.argument(x.type)
    below = test.op("greater", np.ones((1,) * x.tensor.rank, np.float32), value)
    below = test.op("reduce_all", below, axis=0)
    blocks = (test.finish(test.op("reshape", below, test.shape())), body.finish(body.op("add", again, again)))
    return scaled(g, g.op("while_loop", x, regions=blocks), 0.75)


def remembered(g: Graph, x: Value) -> Value:
    """Written to a variable, with what was in it added to it."""
    before = g.read("state", x.tensor)
    g.write("state", x)
    return g.op("sub", before, x)


def written(g: Graph, x: Value) -> Value:
    """A variable of its own for each link."""
    symbol = f"state{len(g.operations)}"
    g.write(symbol, added(g, x))
    return g.read(symbol, x.tensor)


def checked(g: Graph, x: Value) -> Value:
    first = g.op("reshape", g.op("slice", x, g.shape(0), g.shape(1)), g.shape())
    g.add(Assert(message="below 100"), g.op("greater", np.array(1e8, np.float32), first))
    return added(g, x)


# ---- the table -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Chain:
    """A class: what a link adds, the type that goes through the chain, and what else the function takes."""
    step: Step
    type: TensorType
    others: tuple[TensorType, ...] = ()
    state: bool = False


def f32(*shape: int) -> TensorType:
    return TensorType(shape, F32)


MATRIX, IMAGE, ROWS = f32(4, 8), f32(1, 4, 4, 2), f32(1, 4, 4)
BYTES, BYTE_ROWS, BYTE_IMAGE = (t.with_element(I8) for t in (MATRIX, ROWS, IMAGE))
CONDITION, PLACES = TensorType((), I1), TensorType((1, 4), I32)

CHAINS: dict[str, Chain] = {
    "add": Chain(added, MATRIX), "sub": Chain(added_reversed, MATRIX), "x * a + b * x": Chain(mixed, MATRIX),
    "x + x": Chain(doubled, MATRIX), "x * x": Chain(squared, MATRIX), "tanh": Chain(activation, MATRIX),
    "exp": Chain(powers, MATRIX), "abs": Chain(absolute, MATRIX), "select": Chain(selected, MATRIX),
    "select by an argument": Chain(chosen, MATRIX, (TensorType((4, 8), I1),)),
    "cast": Chain(cast_to(F16, F32), MATRIX), "cast bf16": Chain(cast_to(BF16, F32), MATRIX),
    "cast of integers": Chain(cast_to(I16, I32, I8), BYTES), "cast to integers": Chain(cast_to(I32, F32), MATRIX),
    "rescale": Chain(rescaled, BYTES), "sum of bytes": Chain(quantized_sum, BYTES), "table": Chain(looked_up, BYTES),
    "reverse": Chain(reversed_, MATRIX), "transpose": Chain(transposed, f32(5, 5)), "reshape": Chain(reshaped, f32(4, 4)),
    "reshape and transpose": Chain(reshaped_transposed, MATRIX), "slice and pad": Chain(sliced, MATRIX),
    "concat": Chain(concatenated, MATRIX), "tile": Chain(tiled, MATRIX),
    "reduce_max": Chain(reduced, MATRIX), "reduce_sum": Chain(summed, MATRIX), "softmax": Chain(normalized, MATRIX),
    "matmul": Chain(multiplied, ROWS), "matmul of bytes": Chain(multiplied_bytes, BYTE_ROWS),
    "conv2d": Chain(convolved, IMAGE), "conv2d of bytes": Chain(convolved_bytes, BYTE_IMAGE),
    "depthwise_conv2d": Chain(convolved_depthwise, IMAGE),
    "max_pool2d": Chain(pooled, IMAGE), "avg_pool2d": Chain(averaged, IMAGE),
    "gather": Chain(gathered, ROWS, (PLACES,)), "gather of indices": Chain(followed, PLACES, (PLACES,)),
    "scatter": Chain(scattered, ROWS, (PLACES,)), "cond_if": Chain(branched, MATRIX, (CONDITION,)),
    "while_loop": Chain(looped, f32(1)), "one variable": Chain(remembered, MATRIX, state=True),
    "variables": Chain(written, MATRIX, state=True), "checks": Chain(checked, f32(2)),
}


def chain(name: str, operators: int, calls: int = 1) -> Case:
    """A chain of at least that many operators, constants aside."""
    g, wanted = Graph(), CHAINS[name]
    x = first = g.argument(wanted.type)
    for type in wanted.others:
        g.argument(type)
    while computed(g) < operators:
        for _ in range(max(1, (operators - computed(g)) // 8)):
            x = wanted.step(g, x)
    variables = [(o.op.symbol, first.tensor, np.zeros(first.tensor.dims, np.float32))  # type: ignore[attr-defined]
                 for o in g.operations if o.op.variable_effect == "write"]
    module = module_of({"main": g.finish(x)}, list({v[0]: v for v in variables}.values()))
    rng = np.random.default_rng(operators)
    return Case(module, tuple(tuple(data(rng, v.tensor) for v in g.arguments) for _ in range(calls)))


def computed(g: Graph) -> int:
    return sum(not o.op.name.startswith("tosa.const") for o in g.operations)


def data(rng: np.random.Generator, type: TensorType) -> Array:
    """Whole numbers near zero, other than zero; places within the rows."""
    if type.element == I1:
        return rng.integers(0, 2, type.dims).astype(bool)
    if type.element == I32:
        return np.stack([rng.permutation(type.dims[1]) for _ in range(type.dims[0])]).astype(np.int32)
    return rng.integers(1, 8, type.dims).astype(type.element.storage)
