"""Fusion: kernels mean what the graph means, and store only what must be stored."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.elements.expression import Load
from tosaic.lowering.elements.traverse import nodes
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import F32, I8, I32, TensorType
from tosaic.lowering.kernels.interpret import VariableContents, run
from tosaic.lowering.kernels.kernel import Kernels
from tosaic.lowering.kernels.text import print_kernels
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import InterpreterVariables, interpret

from .graphs import Graph, conv, random, rescale, zero


def agree(module: Module, calls: int = 1, seed: int = 0, name: str = "main") -> Kernels:
    """Kernels give the interpreter's answers and state, on random inputs."""
    rng, function = np.random.default_rng(seed), module.function(name)
    kernels, state, variables = fuse(module, function), VariableContents(), InterpreterVariables()
    for _ in range(calls):
        inputs = [random(rng, v) for v in function.arguments]
        expected = interpret(module, function, inputs, variables=variables)
        for actual, right in zip(run(kernels, inputs, state), expected, strict=True):
            assert actual.dtype == right.dtype and actual.shape == right.shape
            if right.dtype.kind == "f":
                np.testing.assert_allclose(actual, right, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(actual, right)
    for symbol, right in variables.snapshot().items():
        if right is not None:
            np.testing.assert_allclose(state.data[symbol], right, rtol=1e-5)
    return kernels


def test_a_contraction_takes_its_elementwise_readers_as_epilogue() -> None:
    rng, g = np.random.default_rng(1), Graph()
    x = g.input(1, 5, 7, 8, dtype="int8")
    y = conv(g, x, rng.integers(-127, 128, (16, 3, 3, 8)).astype(np.int8), rng.integers(-99, 99, 16).astype(np.int32), 3,
             pad=(1, 1, 1, 1))
    y = rescale(g, y, 16, rng)
    y = g.op("clamp", y, min_val=-100, max_val=100)
    kernels = agree(g.module(y))
    assert len(kernels.kernels) == 1


def test_a_layout_operator_is_never_stored() -> None:
    g = Graph()
    x = g.input(4, 6)
    y = g.op("reverse", g.op("transpose", x, perms=(1, 0)), axis=0)
    z = g.op("slice", y, g.shape(1, 1), g.shape(4, 2))
    kernels = agree(g.module(g.op("add", z, z)))
    assert len(kernels.kernels) == 1


def test_a_value_with_two_readers_is_computed_once() -> None:
    g = Graph()
    x = g.input(3, 5)
    e = g.op("exp", x)
    kernels = agree(g.module(g.op("add", e, g.op("reverse", e, axis=1))))
    assert len(kernels.kernels) == 2


def test_a_value_whose_readers_come_together_is_never_stored() -> None:
    """A PReLU: x, x * alpha and x >= 0 meet in one selection."""
    g = Graph()
    x = g.op("exp", g.input(3, 5))
    scaled = g.op("mul", x, np.full((1, 5), 0.25, np.float32), zero("int8"))
    positive = g.op("greater_equal", x, np.ones((1, 5), np.float32))
    kernels = agree(g.module(g.op("select", positive, x, scaled)))
    assert len(kernels.kernels) == 1
    assert sum(isinstance(e, Load) and e.buffer.role == "argument" for e in nodes(kernels.kernels[0].value)) == 1


def test_a_value_whose_readers_come_together_behind_the_last_of_them_is_never_stored() -> None:
    """A GELU: the half of x, read last, meets what was computed of x before in a product behind it."""
    g = Graph()
    x = g.op("exp", g.input(3, 5))
    curve = g.op("tanh", g.op("add", x, g.op("mul", x, x, zero("int8"))))
    half = g.op("mul", x, np.full((1, 1), 0.5, np.float32), zero("int8"))
    kernels = agree(g.module(g.op("mul", half, curve, zero("int8"))))
    assert len(kernels.kernels) == 1


def test_a_value_read_at_two_places_by_what_comes_together_is_stored() -> None:
    g = Graph()
    x = g.op("exp", g.input(3, 5))
    turned = g.op("reverse", x, axis=1)
    kernels = agree(g.module(g.op("maximum", g.op("mul", x, x, zero("int8")), turned)))
    assert len(kernels.kernels) == 2


def test_two_reductions_are_two_kernels() -> None:
    g = Graph()
    x = g.input(3, 5)
    total = g.op("reduce_sum", g.op("exp", x), axis=1)
    kernels = agree(g.module(g.op("reduce_max", total, axis=0)))
    assert len(kernels.kernels) == 2


@pytest.mark.parametrize("operator", ["reduce_sum", "reduce_max", "reduce_min", "reduce_product"])
def test_reductions_of_one_kind_along_several_axes_are_one(operator: str) -> None:
    g = Graph()
    x = g.input(3, 5, 4)
    total = g.op(operator, g.op(operator, g.op("exp", x), axis=0), axis=1)
    kernels = agree(g.module(g.op("tanh", total)))
    assert len(kernels.kernels) == 1


def test_a_sum_of_products_keeps_its_form() -> None:
    """Summed into one, a matrix product would lose the schedule of a contraction."""
    g = Graph()
    product = g.op("matmul", g.input(1, 8, 6), g.input(1, 6, 7), zero("float32"), zero("float32"))
    kernels = agree(g.module(g.op("reduce_sum", product, axis=1)))
    assert [k.out.shape for k in kernels.kernels] == [(1, 8, 7), (1, 1, 7)]


def test_what_two_reductions_lie_between_is_stored_at_its_narrowest() -> None:
    """The bytes that a convolution makes, not the integers that a mean takes them for."""
    rng, g = np.random.default_rng(1), Graph()
    x = g.input(1, 5, 7, 8, dtype="int8")
    y = conv(g, x, rng.integers(-127, 128, (16, 3, 3, 8)).astype(np.int8), rng.integers(-99, 99, 16).astype(np.int32), 3)
    y = g.op("clamp", rescale(g, y, 16, rng), min_val=-100, max_val=100)
    wide = g.op("sub", g.op("cast", y, to=I32), np.full((1, 1, 1, 1), -5, np.int32))
    kernels = agree(g.module(g.op("reduce_sum", g.op("reduce_sum", wide, axis=1), axis=2)))
    assert [(k.out.dtype, k.out.shape) for k in kernels.kernels] == [("int8", (1, 3, 5, 16)), ("int32", (1, 1, 1, 16))]


def test_a_reshape_that_is_not_affine_is_a_view() -> None:
    g = Graph()
    x = g.input(2, 3, 5)
    y = g.op("reshape", g.op("exp", x), g.shape(5, 6))
    kernels = agree(g.module(g.op("negate", y, zero("float32"), zero("float32"))))
    assert len(kernels.kernels) == 2


def test_operators_of_constants_are_computed_while_compiling() -> None:
    g = Graph()
    x = g.input(1, 4)
    c = g.op("reshape", g.op("exp", np.ones((2, 2), np.float32)), g.shape(1, 4))
    kernels = agree(g.module(g.op("mul", x, c, zero("int8"))))
    assert len(kernels.kernels) == 1


def test_an_output_that_is_an_input_a_constant_or_another_output_is_copied() -> None:
    g = Graph()
    x = g.input(3)
    y = g.op("exp", x)
    kernels = agree(g.module(x, y, y, g.constant(np.arange(3, dtype=np.float32)), x))
    assert len(set(kernels.outputs)) == 5


STATE = TensorType((1, 6), F32)


def test_a_read_keeps_its_value_after_a_write() -> None:
    g = Graph()
    x = g.input(1, 6)
    old = g.read("s", STATE)
    g.write("s", g.op("add", old, x))
    agree(g.module(old, g.op("mul", old, x, zero("int8")), variables=[("s", STATE, np.ones((1, 6), np.float32))]), 3)


def test_a_state_that_shifts_into_itself_does_not_overwrite_what_it_reads() -> None:
    g = Graph()
    x = g.input(1, 2)
    joined = g.op("concat", g.read("s", STATE), x, axis=1)
    g.write("s", g.op("slice", joined, g.shape(0, 2), g.shape(1, 6)))
    total = g.op("reduce_sum", joined, axis=1)
    agree(g.module(total, variables=[("s", STATE, np.zeros((1, 6), np.float32))]), 5)


def test_a_state_updated_in_place_needs_no_copy() -> None:
    g = Graph()
    x = g.input(1, 6)
    g.write("s", g.op("add", g.read("s", STATE), x))
    kernels = agree(g.module(variables=[("s", STATE, np.zeros((1, 6), np.float32))]), 3)
    assert len(kernels.kernels) == 1


def test_two_variables_can_swap() -> None:
    g = Graph()
    a, b = g.read("a", STATE), g.read("b", STATE)
    g.write("a", b)
    g.write("b", a)
    agree(g.module(variables=[("a", STATE, np.ones((1, 6), np.float32)), ("b", STATE, np.zeros((1, 6), np.float32))]), 3)


def test_reading_a_variable_that_was_never_written_is_a_fault_at_its_operator() -> None:
    g = Graph()
    kernels = fuse(m := g.module(g.read("s", STATE), variables=[("s", STATE, None)]), m.function())
    with pytest.raises(Problem, match="@s is read before it was written"):
        run(kernels, [])


def test_writing_first_makes_a_variable_readable() -> None:
    g = Graph()
    x = g.input(1, 6)
    g.write("s", x)
    agree(g.module(g.read("s", STATE), variables=[("s", STATE, None)]), 2)


def test_a_variable_declared_twice_is_refused() -> None:
    g = Graph()
    with pytest.raises(Problem, match="declared twice"):
        fuse(m := g.module(variables=[("s", STATE, None), ("s", STATE, None)]), m.function())


def test_a_variable_that_is_not_declared_is_refused() -> None:
    g = Graph()
    g.write("s", g.read("s", STATE))
    with pytest.raises(Problem, match="not declared"):
        fuse(m := g.module(), m.function())


def test_a_variable_that_is_only_read_may_be_another_graphs() -> None:
    g = Graph()
    kernels = fuse(m := g.module(g.read("s", STATE)), m.function())
    assert [(v.buffer.name, v.external) for v in kernels.variables] == [("s", True)]


def branch(g: object, then: str, otherwise: str, x: object, state: bool = False) -> tuple:
    blocks = []
    for number, name in enumerate((then, otherwise)):
        inner = Graph(f"b{number}_")
        y = inner.op(name, x)
        if state and number == 0:
            inner.write("s", y)
        blocks.append(inner.finish(y))
    return tuple(blocks)


def test_a_conditional_runs_one_branch() -> None:
    g = Graph()
    p, x = g.input(1, dtype="bool"), g.input(1, 6)
    y = g.op("exp", x)
    z = g.op("cond_if", p, regions=branch(g, "tanh", "sigmoid", y))
    kernels = agree(g.module(g.op("add", z, y)), 4)
    assert "if arg0" in print_kernels(kernels)


def test_a_branch_not_taken_writes_no_variable() -> None:
    g = Graph()
    p, x = g.input(1, dtype="bool"), g.input(1, 6)
    old = g.read("s", STATE)
    later = g.op("exp", old)
    z = g.op("cond_if", p, regions=branch(g, "tanh", "sigmoid", x, state=True))
    agree(g.module(z, old, later, variables=[("s", STATE, np.ones((1, 6), np.float32))]), 6)


def test_a_loop_carries_its_values_and_may_run_zero_times() -> None:
    g = Graph()
    n, x = g.input(dtype="int32"), g.input(2, 3)
    limited = g.op("maximum", g.op("minimum", n, np.array(5, np.int32)), np.array(-1, np.int32))
    doubled = g.op("add", x, x)
    test, body = Graph("t"), Graph("b")
    i, _, _ = (test.argument(v.type) for v in (limited, x, x))
    condition = test.op("greater", limited, i)
    j, c, d = (body.argument(v.type) for v in (limited, x, x))
    following = body.op("add", j, np.array(1, np.int32))
    results = g.ops("while_loop", g.constant(np.array(0, np.int32)), x, doubled, regions=(
        test.finish(condition), body.finish(following, d, body.op("add", c, doubled))))
    agree(g.module(*results), 6)


def test_a_chain_of_state_shifts_like_a_streaming_model_agrees() -> None:
    rng, g = np.random.default_rng(5), Graph()
    state = TensorType((1, 4, 1, 8), I8)
    x = g.input(1, 1, 1, 8, dtype="int8")
    joined = g.op("concat", g.read("s", state), x, axis=1)
    g.write("s", g.op("slice", joined, g.shape(0, 1, 0, 0), g.shape(1, 4, 1, 8)))
    weight = rng.integers(-127, 128, (5, 1, 8, 1)).astype(np.int8)
    y = conv(g, joined, weight, np.zeros(8, np.int32), 5, name="depthwise_conv2d")
    y = rescale(g, y, 8, rng)
    g2 = conv(g, y, rng.integers(-127, 128, (4, 1, 1, 8)).astype(np.int8), np.zeros(4, np.int32), -5)
    agree(g.module(rescale(g, g2, 4, rng), variables=[("s", state, np.full((1, 4, 1, 8), -128, np.int8))]), 10)


def test_the_text_of_kernels_says_what_each_element_is() -> None:
    g = Graph()
    x = g.input(2, 3, dtype="int32")
    y = g.op("reduce_sum", g.op("add", x, np.array([[1, 2, 3]], np.int32)), axis=1)
    kernels = fuse(m := g.module(y), m.function())
    assert print_kernels(kernels) == """\
kernels main
  input arg0: int32[2, 3]
  output result0: int32[2, 1]
  kernel 0: reduce_sum add
    result0: int32[2, 1] at [i0<2, i1<1] =
      add over [k<3] of (arg0[i0, k] + c0[0, k])
      where c0: int32[1, 3] = [1, 2, 3]
  steps
    compute 0
"""

