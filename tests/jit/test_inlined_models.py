"""Models called inside jitted functions: they become a part of them, with their variables, regions and open extents; and what
is called with arrays of another type is a Problem at the user's line."""
from __future__ import annotations

import pickle
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


def apart(name: str, label: str) -> tosaic.Model:
    """A counter whose variables are its own."""
    return tosaic.load(counter(name).show(whole=True), context=tosaic.Context(label))


def test_variables_of_models_in_one_function_stay_their_own() -> None:
    """Two models and a variable of the process have one name; each is what it is outside of the function."""
    name, one = "inlined.apart", np.array([1], np.int32)
    m, n, v = apart(name, "m"), apart(name, "n"), tosaic.Variable(name, np.zeros(1, np.int32))

    @tosaic.jit
    def f(by: Any) -> Any:
        v.write(v.read() + 100)
        return m(by), n(by * 10), m(by), v.read()

    assert [r.item() for r in f(one)] == [1, 10, 2, 100] and m(one).item() == 3 and n(one).item() == 11
    assert [r.item() for r in f(one)] == [4, 21, 5, 200]
    assert [c.read(name).item() for c in (m.context, n.context, tosaic.default_context)] == [5, 21, 200]
    m.context.clear()
    tosaic.default_context.set(name, one)
    assert [r.item() for r in f(one)] == [1, 31, 2, 101]
    joined = f.compile(one).context
    assert {name, f"{name}_2", f"{name}_3"} <= {*joined} and joined.snapshot()[f"{name}_3"].item() == 31
    for symbol in (name, f"{name}_2", f"{name}_3"):
        joined.reset(symbol)
    assert [r.item() for r in f(one)] == [1, 10, 2, 100]
    joined.delete(f"{name}_3")
    assert name not in n.context and [r.item() for r in f(one)] == [3, 10, 4, 200]
    again = pickle.loads(pickle.dumps(f.compile(one)))
    assert [r.item() for r in again(one)] == [5, 20, 6, 300] and m.context.read(name).item() == 6
    copied = tosaic.Context.from_state(joined.state())
    assert copied.read(f"{name}_2").item() == 6 and copied.read(name).item() == 300
    tosaic.default_context.delete(name)


def test_a_context_of_the_function_s_own_holds_all_of_them() -> None:
    name, one, context = "inlined.held", np.array([1], np.int32), tosaic.Context("f")
    m, n, v = apart(name, "m"), apart(name, "n"), tosaic.Variable(name, np.zeros(1, np.int32))
    f = tosaic.jit(lambda by: (m(by), n(by * 10), v.read()), context=context)
    for number in (1, 2):
        assert [r.item() for r in f(one)] == [number, 10 * number, 0]
    assert name not in m.context and name not in n.context and name not in tosaic.default_context
    assert sorted(context) == [name, f"{name}_2", f"{name}_3"]


def test_a_model_in_a_function_in_a_function_is_the_model() -> None:
    name, one = "inlined.twice", np.array([1], np.int32)
    m, n = apart(name, "m"), apart(name, "n")
    inner = tosaic.jit(lambda by: m(by) + n(by) * 0)
    code = inner.compile(one)
    outer = tosaic.jit(lambda by: (code(by), m(by), n(by)))
    assert [[r.item() for r in outer(one)] for _ in range(2)] == [[1, 2, 2], [3, 4, 4]] and inner(one).item() == 5


def test_compiled_code_in_a_function_has_the_variables_that_it_has_outside() -> None:
    m, one, other = counter("inlined.bound"), np.array([1], np.int32), tosaic.Context("other")
    code = m.main.compile(context=other)
    f = tosaic.jit(lambda by: code(by))
    assert [f(one).item(), code(one).item(), f(one).item()] == [1, 2, 3] and m(one).item() == 1


def test_variables_of_the_process_of_one_name_have_one_type() -> None:
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
