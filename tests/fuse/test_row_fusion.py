"""Kernels over the same rows become one where a row would be read again, and are not fused where that would compute more."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.lowering.elements.expression import Reduce
from tosaic.lowering.elements.traverse import nodes
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.fuse.row_fusion import MOST_NODES
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.lowering.kernels.kernel import Kernels

from .graphs import Graph, zero
from .test_fuse import agree

EPSILON = np.full((1, 1, 1), 1e-5, np.float32)


def mul(g: Graph, x: Value, y: Value | np.ndarray) -> Value:
    return g.op("mul", x, y, zero("int8"))


def softmax(g: Graph, x: Value, axis: int) -> Value:
    powers = g.op("exp", g.op("sub", x, g.op("reduce_max", x, axis=axis)))
    return mul(g, powers, g.op("reciprocal", g.op("reduce_sum", powers, axis=axis)))


def log_softmax(g: Graph, x: Value, axis: int) -> Value:
    below = g.op("sub", x, g.op("reduce_max", x, axis=axis))
    return g.op("sub", below, g.op("log", g.op("reduce_sum", g.op("exp", below), axis=axis)))


def mean(g: Graph, x: Value, axis: int) -> Value:
    share = np.full((1, 1, 1), 1 / x.tensor.dims[axis], np.float32)
    return mul(g, g.op("reduce_sum", x, axis=axis), share)


def normalized(g: Graph, x: Value, axis: int) -> Value:
    away = g.op("sub", x, mean(g, x, axis))
    return mul(g, away, g.op("rsqrt", g.op("add", mean(g, mul(g, away, away), axis), EPSILON)))


def scaled_before(g: Graph, x: Value, axis: int) -> Value:
    """A normalisation as converters write it: x * s - mean * s, where s is the factor of the row by that of the element."""
    middle = mean(g, x, axis)
    away = g.op("sub", x, middle)
    factor = g.op("rsqrt", g.op("add", mean(g, mul(g, away, away), axis), EPSILON))
    gain = np.linspace(0.5, 2, x.tensor.dims[2], dtype=np.float32).reshape(1, 1, -1)
    scale, zero = mul(g, factor, gain), np.zeros(1, np.float32)
    return g.op("add", mul(g, x, scale), mul(g, g.op("negate", middle, zero, zero), scale))


def by_root_mean_square(g: Graph, x: Value, axis: int) -> Value:
    gain = np.linspace(0.5, 2, x.tensor.dims[2], dtype=np.float32).reshape(1, 1, -1)
    return mul(g, mul(g, x, g.op("rsqrt", g.op("add", mean(g, mul(g, x, x), axis), EPSILON))), gain)


def log_of_the_sum(g: Graph, x: Value, axis: int) -> Value:
    most = g.op("reduce_max", x, axis=axis)
    powers = g.op("exp", g.op("sub", x, most))
    return g.op("add", most, g.op("log", g.op("reduce_sum", powers, axis=axis)))


FORMS = [softmax, log_softmax, normalized, scaled_before, by_root_mean_square, log_of_the_sum]


def count(kernels: Kernels) -> int:
    assert len(kernels.steps) == len(kernels.kernels)
    return len(kernels.kernels)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_what_walks_along_a_row_several_times_is_one_kernel(form: Callable[[Graph, Value, int], Value], axis: int) -> None:
    g = Graph()
    assert count(agree(g.module(form(g, g.input(3, 5, 7), axis)))) == 1


def test_sums_along_two_axes_are_sums_over_rows_of_two_axes() -> None:
    g = Graph()
    x = g.input(2, 5, 6)
    share = np.full((1, 1, 1), 1 / 30, np.float32)
    away = g.op("sub", x, mul(g, g.op("reduce_sum", g.op("reduce_sum", x, axis=1), axis=2), share))
    squares = g.op("reduce_sum", g.op("reduce_sum", mul(g, away, away), axis=1), axis=2)
    assert count(agree(g.module(mul(g, away, g.op("rsqrt", g.op("add", mul(g, squares, share), EPSILON)))))) == 1


def test_a_mask_and_a_factor_before_a_softmax_are_a_part_of_it() -> None:
    g = Graph()
    x, mask = g.input(2, 4, 9), g.input(2, 4, 9, dtype="bool")
    far = np.full((1, 1, 1), -1e9, np.float32)
    kept = g.op("select", mask, mul(g, x, np.full((1, 1, 1), 0.25, np.float32)), far)
    assert count(agree(g.module(softmax(g, kept, 2)))) == 1


def test_half_floats_are_rounded_where_they_were() -> None:
    g = Graph()
    x = g.input(2, 3, 8, dtype="float16")
    kernels = agree(g.module(softmax(g, x, 2)))
    assert count(kernels) == 1


def test_products_of_matrices_stay_kernels_of_their_own() -> None:
    g = Graph()
    q, k, v = (g.input(2, 6, 4) for _ in range(3))
    scores = g.op("matmul", q, g.op("transpose", k, perms=(0, 2, 1)), np.zeros(1, "f"), np.zeros(1, "f"))
    kernels = agree(g.module(g.op("matmul", softmax(g, scores, 2), v, np.zeros(1, "f"), np.zeros(1, "f"))))
    assert [k.origin.split()[0] for k in kernels.kernels] == ["matmul", "mul", "matmul"]


def test_what_leaves_the_function_is_stored() -> None:
    g = Graph()
    x = g.input(3, 5, 7)
    most = g.op("reduce_max", x, axis=2)
    kernels = agree(g.module(g.op("exp", g.op("sub", x, most)), most))
    assert {k.out for k in kernels.kernels} == set(kernels.outputs)


def test_rows_that_are_no_rows_of_the_result_are_not_fused() -> None:
    """The largest of each column, taken from elements that are summed by rows: together they would be summed again and
    again."""
    g = Graph()
    x = g.input(4, 5, 6)
    scaled = mul(g, x, g.op("reciprocal", g.op("reduce_sum", x, axis=2)))
    kernels = agree(g.module(g.op("sub", scaled, g.op("reduce_max", scaled, axis=1))))
    assert count(kernels) > 1


def test_what_is_the_same_for_several_rows_is_not_fused() -> None:
    """A tensor of exponentials that every row is divided by, and that comes from sums along another axis."""
    g = Graph()
    x, y = g.input(3, 5, 7), g.input(5, 7)
    shared = g.op("reshape", g.op("exp", g.op("exp", g.op("reduce_sum", y, axis=0))), g.shape(1, 1, 7))
    kernels = agree(g.module(mul(g, softmax(g, x, 2), shared)))
    assert all(k.out.shape != (3, 5, 7) or "exp exp" not in k.origin for k in kernels.kernels)


def test_one_long_row_is_not_fused() -> None:
    """So that it can be shared out to threads."""
    g = Graph()
    assert count(agree(g.module(softmax(g, g.input(1, 1, 1 << 10), 2)))) == 1
    g = Graph()
    assert count(agree(g.module(softmax(g, g.input(1, 1, (1 << 16) + 1), 2)))) == 4


@pytest.mark.parametrize(("shape", "kernels"), [((2, 128, 1024), 1), ((2, 129, 1024), 4), ((2, 129, 1023), 1)])
def test_elements_that_share_sets_of_the_cache_are_not_walked_along_again(shape: tuple[int, int, int], kernels: int) -> None:
    g = Graph()
    module = g.module(softmax(g, g.input(*shape), 1))
    assert count(fuse(module, module.function("main"))) == kernels


def test_rows_that_are_the_outermost_axis_are_not_fused() -> None:
    """So that the result can be tiled by rows."""
    g = Graph()
    assert count(agree(g.module(softmax(g, g.input(5, 4, 6), 0)))) == 4


def test_a_read_stays_before_a_write() -> None:
    state = TensorType((3, 4, 5), F32)
    g = Graph()
    old, x = g.read("s", state), g.input(3, 4, 5)
    most = g.op("reduce_max", old, axis=2)
    g.write("s", x)
    agree(g.module(g.op("sub", x, most), variables=[("s", state, np.ones((3, 4, 5), "f"))]), calls=3)


def test_independent_sums_of_different_tensors_are_not_fused() -> None:
    g = Graph()
    x, y = g.input(3, 4, 5), g.input(3, 4, 5)
    kernels = agree(g.module(g.op("exp", g.op("add", g.op("reduce_sum", x, axis=2), g.op("reduce_max", y, axis=2)))))
    assert all(sum(isinstance(e, Reduce) for e in nodes(k.value)) <= 1 for k in kernels.kernels)


def test_a_very_long_expression_stays_as_it_is() -> None:
    g = Graph()
    x = g.input(2, 3, 4)
    long = x
    for _ in range(80):
        long = g.op("abs", g.op("ceil", long))
    kernels = agree(g.module(normalized(g, long, 2)))
    assert all(len(list(nodes(k.value))) < 2 * MOST_NODES for k in kernels.kernels)
