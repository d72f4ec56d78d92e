"""Models called inside jitted functions: they become a part of them, with their variables, regions and open extents; and what
is called with arrays of another type is a Problem at the user's line."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import Problem

X = np.arange(4, dtype=np.float32)


def model(body: str, signature: str = "(%x: tensor<4xf32>) -> tensor<4xf32>", declarations: str = "") -> tosaic.Model:
    return tosaic.load(f"module {{\n{declarations}\n  func.func @main{signature} {{\n{body}\n  }}\n}}")


def exp() -> tosaic.Model:
    return model("%0 = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32>")


WAYS: dict[str, Callable[[tosaic.Model], Callable[..., Any]]] = {
    "model": lambda m: m, "entry": lambda m: m.main, "compiled": lambda m: m.main.compile(),
    "jitted": tosaic.jit, "by name": lambda m: lambda x: m(x=x), "by one mapping": lambda m: lambda x: m({"x": x}),
    "called before": lambda m: (m(X), m(X), m)[2],
    "compiled and called before": lambda m: (c := m.main.compile(), c(X), c(X))[0]}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_becomes_a_part_of_the_function(way: str) -> None:
    m = exp()
    called = WAYS[way](m)
    f = tosaic.jit(lambda x: called(x * 2.0) + 1.0)
    np.testing.assert_allclose(f(X), np.exp(2 * X) + 1, rtol=1e-6)
    assert f.lower(X).show("kernels").count("kernel ") == 1  # all of it is fused
    np.testing.assert_allclose(called(X), np.exp(X), rtol=1e-6)  # and it can be called as before


def test_a_model_that_is_called_twice_is_in_the_function_twice() -> None:
    m = exp()
    f = tosaic.jit(lambda x: m(m(x * 0.5) * 0.25))
    np.testing.assert_allclose(f(X), np.exp(np.exp(X / 2) / 4), rtol=1e-6)
    assert f.trace(X).check([[X]]).agrees


def test_arrays_are_constants_beside_a_tensor() -> None:
    m = model("%0 = tosa.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32>",
              "(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32>")
    np.testing.assert_array_equal(tosaic.jit(lambda x: m(x, X))(X), 2 * X)
    np.testing.assert_array_equal(tosaic.jit(lambda x: m(y=x, x=[1.0, 2.0, 3.0, 4.0]))(X), X + np.arange(1, 5))


def test_several_results_are_a_tuple() -> None:
    m = model("%0 = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>\n return %0, %x : tensor<4xf32>, tensor<4xf32>",
              "(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)")
    made, given = tosaic.jit(lambda x: m(x))(X)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_allclose(made, np.exp(X), rtol=1e-6)


CHOICE = """
  %0 = "tosa.cond_if"(%p, %x) ({
  ^bb0(%a: tensor<4xf32>):
    %1 = tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %1 : tensor<4xf32>
  }, {
  ^bb0(%a: tensor<4xf32>):
    %1 = tosa.negate %a, %z, %z : (tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4xf32>
    tosa.yield %1 : tensor<4xf32>
  }) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>"""


def test_regions_come_along_and_read_what_is_around_them() -> None:
    m = model('%z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>' + CHOICE,
              "(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32>")
    f = tosaic.jit(lambda p, x: m(p, m(p, x) + 1.0))
    for p in (True, False):
        expected = np.abs(np.abs(-X) + 1) if p else -(X + 1)
        np.testing.assert_array_equal(f(np.array(p), -X), expected if p else -(X + 1))
        assert f.trace(np.array(p), X).check([[np.array(p), -X]]).agrees


COUNT = "  tosa.variable @{name} = dense<0> : tensor<1xi32>"
COUNTING = """  %0 = tosa.variable_read @{name} : tensor<1xi32>
  %1 = tosa.add %0, %by : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  tosa.variable_write @{name}, %1 : tensor<1xi32>
  return %1 : tensor<1xi32>"""


def counter(name: str) -> tosaic.Model:
    return model(COUNTING.format(name=name), "(%by: tensor<1xi32>) -> tensor<1xi32>", COUNT.format(name=name))


def test_variables_are_those_of_the_process() -> None:
    m, one = counter("inlined.count"), np.array([1], np.int32)
    f = tosaic.jit(lambda by: m(by) * 10)
    assert [f(one).item(), m(one).item(), f(one).item()] == [10, 2, 30]


def test_variables_of_the_function_s_context() -> None:
    m, one, context = counter("inlined.own"), np.array([1], np.int32), tosaic.Context("inlined")
    f = tosaic.jit(lambda by: m(by), context=context)
    assert [f(one).item(), f(one).item(), m(one).item()] == [1, 2, 1]


def test_variables_of_a_model_s_own_context_are_a_problem() -> None:
    m = tosaic.load(counter("inlined.apart").show(whole=True), context=tosaic.Context("inlined"))
    with pytest.raises(Problem, match="belong to a context of its own"):
        tosaic.jit(lambda by: m(by))(np.array([1], np.int32))


def test_variables_of_one_name_have_one_type() -> None:
    m, v = counter("inlined.both"), tosaic.Variable("inlined.both", np.zeros(3, np.float32))
    with pytest.raises(Problem, match=r"inlined.both of main is tensor<1xi32>, another one of this name is tensor<3xf32>"):
        tosaic.jit(lambda by: (v.read(), m(by)))(np.array([1], np.int32))


def test_open_extents_are_those_of_the_call() -> None:
    m = model("%0 = tosa.exp %x : (tensor<?x2xf32>) -> tensor<?x2xf32>\n return %0 : tensor<?x2xf32>",
              "(%x: tensor<?x2xf32>) -> tensor<?x2xf32>")
    f = tosaic.jit(lambda x: m(x + 1.0))
    for n in (1, 5):
        x = np.ones((n, 2), np.float32)
        np.testing.assert_allclose(f(x), np.exp(x + 1), rtol=1e-6)


@pytest.mark.parametrize(("call", "message"), [
    (lambda m, x: m(x[:2]), r"input x of main must be tensor<4xf32>, got tensor<2xf32>"),
    (lambda m, x: m(x.astype(np.int32)), r"input x of main must be tensor<4xf32>, got tensor<4xi32>"),
    (lambda m, x: m(y=x), "main has no input or option named y"),
    (lambda m, x: m(x, x), "main takes 1 input, got 2"),
], ids=["shape", "type", "name", "count"])
def test_a_wrong_call_is_a_problem_where_it_stands(call: Callable[..., Any], message: str) -> None:
    m = exp()
    with pytest.raises(Problem, match=message) as caught:
        tosaic.jit(lambda x: call(m, x))(X)
    assert caught.value.position is not None and caught.value.position.source.name == __file__


def test_a_whole_network_with_what_is_around_it() -> None:
    """Images as bytes, scaled before the network and ranked after it: one function."""
    rng = np.random.default_rng(0)
    w, z = rng.standard_normal((8, 3, 3, 3)).astype(np.float32), np.zeros(1, np.float32)

    def convolve(x: tosaic.Tensor) -> tosaic.Tensor:
        return tosaic.tosa.conv2d(x, w, np.zeros(8, np.float32), z, z, pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1),
                                  acc_type="f32")

    network = tosaic.load(tosaic.jit(convolve).trace(np.zeros((1, 6, 6, 3), np.float32)).show(whole=True))
    best = tosaic.jit(lambda image: tosaic.ops.argmax(network(image.astype(np.float32) / 127.5 - 1.0).sum(axis=(1, 2)), axis=1))
    image = rng.integers(0, 256, (1, 6, 6, 3)).astype(np.uint8)
    expected = network(image.astype(np.float32) / np.float32(127.5) - 1).sum(axis=(1, 2)).argmax(axis=1)
    np.testing.assert_array_equal(best(image), expected)


QUANTIZED = """
func.func @main(%x: tensor<3x7x!quant.uniform<{storage}:f32{axis}, {numbers}>>)
    -> tensor<3x7x!quant.uniform<{storage}:f32{axis}, {numbers}>> {{
  return %x : tensor<3x7x!quant.uniform<{storage}:f32{axis}, {numbers}>> }}"""
HOSTILE = np.array([[0.25, -900, np.nan, np.inf, -np.inf, -0.0, 1e-45], [0.75, -0.75, 0.5, 1.5, -1.5, 2.5, 3e38],
                    [63.3, 63.7, -62.4, -63.2, 0.15, 0.05, 12.345]], np.float32)


@pytest.mark.parametrize(("storage", "axis", "numbers"), [
    ("i8", "", "0.5:-3"), ("u8", "", "0.1:7"), ("i16", "", "0.001"), ("i8", ":0", "{0.5, 0.3:4, 1.7:-128}")], ids=str)
def test_floats_and_what_stands_for_them_are_those_of_arrays(storage: str, axis: str, numbers: str) -> None:
    m = tosaic.load(QUANTIZED.format(storage=storage, axis=axis, numbers=numbers)).main
    stored = tosaic.jit(lambda x: m.quantize(x))(HOSTILE)
    np.testing.assert_array_equal(stored, m.quantize(HOSTILE))
    assert stored.dtype == m.quantize(HOSTILE).dtype
    np.testing.assert_array_equal(tosaic.jit(lambda x: m.dequantize(x))(stored), m.dequantize(stored))
    np.testing.assert_array_equal(tosaic.jit(m.on_floats)(HOSTILE), m.on_floats(HOSTILE))
