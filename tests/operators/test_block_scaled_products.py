"""Products of block-scaled tensors: MATMUL_T and the convolutions with composite and mixed types, MATMUL_T_BLOCK_SCALED and
CONV2D_BLOCK_SCALED, against float64 and compiled against the interpreter."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.graph.block_scaled_arrays import split
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E8M0, F16, F32, BlockScaled, ElementType, block_scaled

from .block_scaled import COMPOSITES, VALUES, Array, Graph, both, codes, records
from .test_block_scaled_casts import numbers

FRACTIONS = {F32: 23, F16: 10, BF16: 7}


def real(x: Array) -> Array:
    return numbers(x["value"]) * x["scale"].astype(np.float64) if x.dtype.names else x.astype(np.float64)


def random(rng: np.random.Generator, element: ElementType, *shape: int) -> Array:
    """Random numbers, small enough for their products to fit fp16."""
    if isinstance(element, BlockScaled):
        return records(rng, element, *shape, low=105, high=115)
    return codes(rng, element, *shape) if element.bits == 8 else rng.standard_normal(shape).astype(element.dtype)


def assert_near(found: Array, exact: Array, magnitude: Array, terms: int, element: ElementType) -> None:
    """As near as sums of float32 products, rounded once to `element`, are."""
    unit = magnitude * (2.0 ** -23 * terms + 2.0 ** -(1 + FRACTIONS[element]))
    assert (np.abs(found.astype(np.float64) - exact) <= unit).all()


def zero_type(element: ElementType) -> ElementType:
    """The type of a zero point."""
    return F32 if isinstance(element, BlockScaled) else element


PAIRS = [*zip(COMPOSITES, COMPOSITES), (COMPOSITES[0], COMPOSITES[5]),
         *itertools.product((COMPOSITES[2],), (F32, BF16, F16, F8E4M3)), *itertools.product((F16, F32), (COMPOSITES[4],))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("first", "second", "to"), [(a, b, to) for a, b in PAIRS for to in (F32, BF16)
                                                     if to == F32 or F32 not in (a, b)], ids=str)
@pytest.mark.parametrize("batch", [1, 3])
def test_matmul_t_takes_composite_types(first: ElementType, second: ElementType, to: ElementType, batch: int) -> None:
    rng = np.random.default_rng(0)
    a, b = random(rng, first, 3, 5, 96), random(rng, second, batch, 7, 96)
    graph = Graph()
    x, y = graph.input(first, *a.shape), graph.input(second, *b.shape)
    module = graph.module(graph.op("matmul_t", x, y, graph.zero(zero_type(first)), graph.zero(zero_type(second)), to=to))
    exact, size = (f(real(a)) @ f(real(b)).swapaxes(1, 2) for f in (lambda x: x, np.abs))
    for found in both(module, a, b)[0]:
        assert found.dtype == to.dtype
        assert_near(found, exact, size, 96, to)


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("batch", [1, 2])
def test_matmul_t_block_scaled_is_the_product_of_the_scaled_values(value: ElementType, batch: int) -> None:
    rng, element = np.random.default_rng(1), block_scaled(value)
    a, b = records(rng, element, 2, 4, 64), records(rng, element, batch, 9, 64)
    graph = Graph()
    operands = [graph.input(e, *x.shape) for r in (a, b) for e, x in zip((value, F8E8M0), split(r, element))]
    module = graph.module(graph.op("matmul_t_block_scaled", *operands, block_size="BLOCK_SIZE_32"))
    exact, size = (f(real(a)) @ f(real(b)).swapaxes(1, 2) for f in (lambda x: x, np.abs))
    for found in both(module, *split(a, element), *split(b, element))[0]:
        assert_near(found, exact, size, 64, F32)


def convolved(x: Array, weight: Array, stride: int) -> Array:
    """Rows and columns alike, without padding; any number of spatial axes."""
    rank, kernel = x.ndim - 2, weight.shape[1:-1]
    places = [(n - k) // stride + 1 for n, k in zip(x.shape[1:-1], kernel)]
    total = np.zeros((x.shape[0], *places, weight.shape[0]))
    for place in np.ndindex(*kernel):
        window = tuple(slice(k, k + (n - 1) * stride + 1, stride) for k, n in zip(place, places))
        total += x[(slice(None), *window)] @ weight[(slice(None), *place)].T
    assert total.ndim == rank + 2
    return total


CONVOLUTIONS: list[tuple[ElementType, ElementType, ElementType, ElementType]] = [
    *((c, c, F32, F32) for c in COMPOSITES), (COMPOSITES[1], COMPOSITES[3], F16, F16), (F16, COMPOSITES[5], F16, F32),
    (COMPOSITES[4], BF16, BF16, BF16), (COMPOSITES[2], F8E4M3, F16, BF16), (F32, COMPOSITES[0], F32, F32)]


@pytest.mark.parametrize(("first", "second", "to", "accumulator"), CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("spatial", [2, 3])
def test_convolutions_take_composite_types(first: ElementType, second: ElementType, to: ElementType,
                                           accumulator: ElementType, spatial: int) -> None:
    rng = np.random.default_rng(2)
    x, weight = random(rng, first, 1, *(5,) * spatial, 64), random(rng, second, 3, *(3,) * spatial, 64)
    bias = rng.standard_normal(3).astype(to.dtype)
    graph = Graph()
    operands = graph.input(first, *x.shape), graph.input(second, *weight.shape), graph.input(to, 3)
    zeros = graph.zero(zero_type(first)), graph.zero(zero_type(second))
    module = graph.module(graph.op(f"conv{spatial}d", *operands, *zeros, pad=(0,) * 2 * spatial, stride=(2,) * spatial,
                                   dilation=(1,) * spatial, acc_type=accumulator))
    exact, size = (convolved(f(real(x)), f(real(weight)), 2) + f(bias.astype(np.float64)) for f in (lambda x: x, np.abs))
    for found in both(module, x, weight, bias)[0]:
        assert found.dtype == to.dtype
        assert_near(found, exact, size * 2, 64 * 3 ** spatial, to)


@pytest.mark.parametrize("composite", COMPOSITES, ids=str)
def test_transpose_conv2d_takes_composite_types(composite: BlockScaled) -> None:
    rng = np.random.default_rng(3)
    x, weight = records(rng, composite, 1, 3, 3, 32), records(rng, composite, 2, 2, 2, 32)
    graph = Graph()
    operands = graph.input(composite, *x.shape), graph.input(composite, *weight.shape), graph.input(F32, 1)
    module = graph.module(graph.op("transpose_conv2d", *operands, graph.zero(F32), graph.zero(F32), out_pad=(0,) * 4,
                                   stride=(2, 2), acc_type=F32))
    exact = np.zeros((1, 6, 6, 2))
    size = np.zeros(exact.shape)
    for kh, kw in np.ndindex(2, 2):
        exact[:, kh::2, kw::2] += real(x) @ real(weight)[:, kh, kw].T
        size[:, kh::2, kw::2] += np.abs(real(x)) @ np.abs(real(weight)[:, kh, kw]).T
    for found in both(module, x, weight, np.zeros(1, np.float32))[0]:
        assert_near(found, exact, size, 32, F32)


@pytest.mark.parametrize("value", VALUES[:-1], ids=str)
def test_conv2d_block_scaled_is_the_convolution_of_the_scaled_values(value: ElementType) -> None:
    rng, element = np.random.default_rng(4), block_scaled(value)
    x, weight = records(rng, element, 2, 7, 5, 64), records(rng, element, 3, 2, 3, 64)
    bias = rng.standard_normal(3).astype(np.float32)
    graph = Graph()
    operands = [graph.input(e, *a.shape) for r in (x, weight) for e, a in zip((value, F8E8M0), split(r, element))]
    shapes = graph.shape(1, 0, 1, 0), graph.shape(2, 1), graph.shape(1, 1)
    module = graph.module(graph.op("conv2d_block_scaled", *operands, graph.input(F32, 3), *shapes,
                                   block_size="BLOCK_SIZE_32"))
    padded = np.pad(real(x), ((0, 0), (1, 0), (1, 0), (0, 0)))
    exact, size = (convolved(f(padded), f(real(weight)), 1)[:, ::2] + f(bias.astype(np.float64))
                   for f in (lambda x: x, np.abs))
    for found in both(module, *split(x, element), *split(weight, element), bias)[0]:
        assert_near(found, exact, size * 2, 64 * 6, F32)


def test_a_constant_weight_is_scaled_while_compiling() -> None:
    rng, element = np.random.default_rng(5), COMPOSITES[4]
    a, b = rng.standard_normal((1, 4, 64)).astype(np.float32), records(rng, element, 1, 3, 64)
    graph = Graph()
    x: Any = graph.input(F32, *a.shape)
    module = graph.module(graph.op("matmul_t", x, graph.constant(b, element), graph.zero(F32), graph.zero(F32), to=F32))
    from tosaic.jit.stages import Traced
    kernels = Traced(module, "main").lower().kernels
    assert [k.origin for k in kernels.kernels] == ["matmul_t reshape"]
    assert [b.dtype for b in kernels.inputs] == ["float32"]
    for found in both(module, a)[0]:
        assert_near(found, real(a) @ real(b).swapaxes(1, 2), np.abs(real(a)) @ np.abs(real(b)).swapaxes(1, 2), 64, F32)
