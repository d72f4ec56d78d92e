"""Transposes that move behind what reads them leave every result as it was, bit for bit; and those of networks with channels
first are gone."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.graph.graph import Function, Module, Value
from tosaic.lowering.graph.types import F32, I8, I32, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.prune import prune
from tosaic.lowering.rewrite.sink_transposes import sink_transposes
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import Interpreter

EXTENTS = (1, 1, 2, 3, 4)
Rng = np.random.Generator


# ---- random graphs ---------------------------------------------------------------------------------------------------------
def transposed(g: Rng, e: Emitter, x: Value) -> Value:
    return e("transpose", x, perms=tuple(int(p) for p in g.permutation(x.tensor.rank)))


def unary(g: Rng, e: Emitter, x: Value) -> Value:
    if x.tensor.element == F32:
        return e(str(g.choice(["abs", "tanh", "floor"])), x)
    return e("table", x, e.constant(np.arange(-128, 128)[::-1].astype(np.int8)))


def with_constant(g: Rng, e: Emitter, x: Value) -> Value:
    if x.tensor.element != F32:
        return unary(g, e, x)
    shape = [n if g.random() < 0.5 else 1 for n in x.tensor.dims]
    return e("maximum", x, e.constant(g.standard_normal(shape).astype(np.float32)))


def rescaled(g: Rng, e: Emitter, x: Value) -> Value:
    """A byte as another: by one factor, or by one for each of the last axis."""
    if x.tensor.element != I8 or not x.tensor.rank:
        return x
    by_channel = bool(g.random() < 0.5)
    count = x.tensor.dims[-1] if by_channel else 1
    factor = e.constant(g.integers(1 << 30, (1 << 31) - 1, count).astype(np.int32))
    shift, zero, three = (e.constant(np.full(n, value, np.int8)) for n, value in ((count, 31), (1, 0), (1, 3)))
    return e("rescale", x, factor, shift, zero, three, scale32=True, rounding_mode="SINGLE_ROUND", per_channel=by_channel,
             input_unsigned=False, output_unsigned=False, to=I8)


def reduced(g: Rng, e: Emitter, x: Value) -> Value:
    kind = str(g.choice(["reduce_max", "reduce_sum"])) if x.tensor.element == F32 else "reduce_max"
    return e(kind, x, axis=int(g.integers(x.tensor.rank)))


def reversed_(g: Rng, e: Emitter, x: Value) -> Value:
    return e("reverse", x, axis=int(g.integers(x.tensor.rank)))


def sliced(g: Rng, e: Emitter, x: Value) -> Value:
    size = [int(g.integers(1, n + 1)) for n in x.tensor.dims]
    start = [int(g.integers(0, n - s + 1)) for n, s in zip(x.tensor.dims, size)]
    return e("slice", x, e.shape(start), e.shape(size))


def padded(g: Rng, e: Emitter, x: Value) -> Value:
    amounts = g.integers(0, 2, 2 * x.tensor.rank).tolist()
    return e("pad", x, e.shape(amounts), e.constant(np.full(1, 2, x.tensor.element.dtype)))


def joined(g: Rng, e: Emitter, x: Value) -> Value:
    return e("concat", x, unary(g, e, x), axis=int(g.integers(x.tensor.rank)))


def reshaped(g: Rng, e: Emitter, x: Value) -> Value:
    """Neighbours joined, or a new axis of one element."""
    dims = list(x.tensor.dims)
    at = int(g.integers(len(dims)))
    if at + 1 < len(dims) and g.random() < 0.6:
        dims[at:at + 2] = [dims[at] * dims[at + 1]]
    elif len(dims) < 5:
        dims.insert(at, 1)
    return e("reshape", x, e.shape(dims))


STEPS: tuple[Callable[[Rng, Emitter, Value], Value], ...] = (
    transposed, transposed, transposed, unary, with_constant, rescaled, reduced, reversed_, sliced, padded, joined, reshaped)


def random_module(seed: int) -> Module:
    """Steps on one input, each on one of the values before it; two of one shape are added now and then."""
    g, e = np.random.default_rng(seed), Emitter()
    element = F32 if seed % 3 else I8
    shape = tuple(int(g.choice(EXTENTS)) for _ in range(int(g.integers(2, 5))))
    values = [e.blocks[0].argument(TensorType(shape, element), "x")]
    for _ in range(int(g.integers(4, 12))):
        x = values[int(g.integers(max(0, len(values) - 3), len(values)))]
        alike = [v for v in values if v.tensor == x.tensor and v is not x]
        if alike and element == F32 and g.random() < 0.5:
            values.append(e("add", x, alike[int(g.integers(len(alike)))]))
        else:
            values.append(STEPS[int(g.integers(len(STEPS)))](g, e, x))
    results = (values[-1], values[len(values) // 2])
    return Module((Function("f", e.blocks[0].finish(*results), tuple(r.type for r in results)),))


@pytest.mark.parametrize("seed", range(150))
def test_results_stay(seed: int) -> None:
    before = random_module(seed)
    after = prune(sink_transposes(before))
    verify(after)
    x = before.functions[0].arguments[0].tensor
    array = (np.random.default_rng(seed).standard_normal(x.dims) * 30).astype(x.element.dtype)
    for a, b in zip(Interpreter(after)(array), Interpreter(before)(array), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(0, 300, 10))
def test_what_is_compiled_gives_the_results_of_the_graph_that_was_read(seed: int) -> None:
    before = random_module(seed)
    x = before.functions[0].arguments[0].tensor
    array = (np.random.default_rng(seed).standard_normal(x.dims) * 30).astype(x.element.dtype)
    found = Traced(before, "f").compile()(array)
    for a, b in zip(found, Interpreter(before)(array), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# ---- networks with channels first -------------------------------------------------------------------------------------------
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def convolved(e: Emitter, x: Value, channels: int) -> Value:
    """A 1x1 convolution of an image with channels first, as converters write it."""
    last = e("transpose", x, perms=LAST)
    shape = (channels, 1, 1, last.tensor.dims[-1])
    weights = e.constant(np.random.default_rng(channels).standard_normal(shape).astype(np.float32))
    zero = e.constant(np.zeros(1, np.float32))
    found = e("conv2d", last, weights, e.constant(np.zeros(channels, np.float32)), zero, zero, pad=(0, 0, 0, 0), stride=(1, 1),
              dilation=(1, 1), acc_type=F32)
    return e("transpose", found, perms=FIRST)


def hard_swish(e: Emitter, x: Value) -> Value:
    shift = e.constant(np.full((1, 1, 1, 1), 3, np.float32))
    gate = e("clamp", e("add", x, shift), min_val=0.0, max_val=6.0)
    return e("mul", x, gate, e.constant(np.zeros(1, np.int8)))


def squeezed(e: Emitter, x: Value) -> Value:
    """Scaled by channel, by a function of the mean."""
    mean = e("reduce_sum", e("reduce_sum", x, axis=2), axis=3)
    gate = e("sigmoid", convolved(e, mean, x.tensor.dims[1]))
    return e("mul", x, gate, e.constant(np.zeros(1, np.int8)))


def test_a_network_with_channels_first_has_transposes_at_its_ends_only() -> None:
    e = Emitter()
    x = e.blocks[0].argument(TensorType((1, 3, 6, 6), F32), "x")
    y = hard_swish(e, convolved(e, x, 8))
    z = e("concat", squeezed(e, convolved(e, y, 8)), y, axis=1)
    z = e("add", convolved(e, z, 8), y)
    body = e.blocks[0].finish(z)
    module = prune(sink_transposes(Module((Function("f", body, (z.type,)),))))
    kept = [o for o in module.functions[0].body.operations if o.op.name == "tosa.transpose"]
    assert sum(o.operands[0].constant is None for o in body.operations if o.op.name == "tosa.transpose") == 8
    assert len([o for o in kept if o.operands[0].constant is None and moves(o.operands[0].tensor.dims, o.op.perms)]) == 2


def moves(shape: tuple[int, ...], order: tuple[int, ...]) -> bool:
    axes = [a for a in order if shape[a] != 1]
    return axes != sorted(axes)


def test_a_graph_without_transposes_is_the_same_object() -> None:
    e = Emitter()
    x = e.blocks[0].argument(TensorType((2, 3), I32), "x")
    y = e("abs", x)
    module = Module((Function("f", e.blocks[0].finish(y), (y.type,)),))
    assert sink_transposes(module) is module


def test_a_variable_takes_a_transposed_value_as_it_is() -> None:
    """What has no results has nothing to move, in a branch, too."""
    module = read_module("""tosa.variable @v = dense<0.0> : tensor<3x2xf32>
func.func @f(%x: tensor<2x3xf32>, %c: tensor<i1>) -> tensor<3x2xf32> {
  %y = "tosa.transpose"(%x) {perms = array<i32: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  "tosa.variable_write"(%y) <{name = "v"}> : (tensor<3x2xf32>) -> ()
  %z = "tosa.cond_if"(%c, %y) ({
  ^bb0(%a: tensor<3x2xf32>):
    "tosa.variable_write"(%a) <{name = "v"}> : (tensor<3x2xf32>) -> ()
    "tosa.yield"(%a) : (tensor<3x2xf32>) -> ()
  }, {
  ^bb0(%b: tensor<3x2xf32>):
    "tosa.yield"(%b) : (tensor<3x2xf32>) -> ()
  }) : (tensor<i1>, tensor<3x2xf32>) -> (tensor<3x2xf32>)
  return %z : tensor<3x2xf32>
}""")
    after = sink_transposes(module)
    verify(after)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(Interpreter(after)(x, np.array(True))[0], x.T)
