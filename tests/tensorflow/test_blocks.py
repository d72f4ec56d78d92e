"""Functions of several blocks: what they compute, compiled and by the interpreter, which follows the branches one by one."""
from __future__ import annotations

import collections

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter

from .random_blocks import BlocksMaker

INPUTS = tuple(tuple(np.array(x, np.int32) for x in numbers) for numbers in ((5, 1, 2), (0, 7, -3), (12, 3, 100), (3, -5, 6)))


def read(text: str) -> Module:
    """The module, read twice: printed it reads back to the same text."""
    module = read_module(text)
    verify(module)
    printed = print_module(module)
    assert print_module(read_module(printed)) == printed
    return module


def answers(text: str) -> list[tuple[Array, ...]]:
    """Of calls on one state, by the interpreter of the blocks."""
    environment = Environment(read(text))
    return [interpret(environment, "main", list(inputs)) for inputs in INPUTS]


def same(found: object, expected: object) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))  # type: ignore[call-overload]


def verdict(seed: int) -> str:
    text = BlocksMaker(seed).text()
    expected = answers(text)
    try:
        run = Interpreter(to_tosa(read_module(text), "main"))
    except Problem as problem:
        return problem.kind
    for inputs, right in zip(INPUTS, expected):
        assert same(run(*inputs), right), text
    return "equal"


@pytest.mark.sampled(4)
def test_random_blocks_compute_what_their_branches_say() -> None:
    found = collections.Counter(verdict(seed) for seed in range(150))
    assert found == {"equal": 150}


@pytest.mark.long
def test_many_more_random_blocks_compute_what_their_branches_say() -> None:
    found = collections.Counter(verdict(seed) for seed in range(1000, 9000))
    assert found == {"equal": 8000}


@pytest.mark.parametrize("seed", range(6))
def test_random_blocks_compile(seed: int) -> None:
    text = BlocksMaker(seed).text()
    expected = answers(text)
    model = tosaic.load(text, context=tosaic.Context(f"blocks {seed}"))
    for inputs, right in zip(INPUTS, expected):
        assert same(model(*inputs), right), text


# ---- known answers ---------------------------------------------------------------------------------------------------
ABSOLUTE = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = tosa.greater %zero, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = tensor.extract %0[] : tensor<i1>
  cf.cond_br %1, ^negative, ^done(%x : tensor<f32>)
^done(%y: tensor<f32>):
  return %y : tensor<f32>
^negative:
  %2 = tosa.sub %zero, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.br ^done(%2 : tensor<f32>)
}"""
FACTORIAL = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %one = "tf.Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  cf.br ^test(%n, %one : tensor<i32>, tensor<i32>)
^test(%i: tensor<i32>, %product: tensor<i32>):
  %0 = "tf.Greater"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %1 = tensor.extract %0[] : tensor<i1>
  cf.cond_br %1, ^body, ^end
^body:
  %2 = "tf.Mul"(%product, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %3 = "tf.Sub"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  cf.br ^test(%3, %2 : tensor<i32>, tensor<i32>)
^end:
  return %product : tensor<i32>
}"""
TWO_ENTRIES = """func.func @main(%p: i1, %n: tensor<i32>) -> tensor<i32> {
  %one = arith.constant dense<1> : tensor<i32>
  %two = arith.constant dense<2> : tensor<i32>
  cf.cond_br %p, ^a(%n : tensor<i32>), ^b(%n : tensor<i32>)
^a(%x: tensor<i32>):
  %0 = tosa.mul %x, %two, %shift : (tensor<i32>, tensor<i32>, tensor<1xi8>) -> tensor<i32>
  cf.br ^b(%0 : tensor<i32>)
^b(%y: tensor<i32>):
  %1 = tosa.sub %y, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %limit = arith.constant dense<20> : tensor<i32>
  %2 = tosa.greater %limit, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %3 = tensor.extract %2[] : tensor<i1>
  cf.cond_br %3, ^a(%1 : tensor<i32>), ^end(%1 : tensor<i32>)
^end(%z: tensor<i32>):
  return %z : tensor<i32>
}""".replace("  cf.cond_br %p", "  %shift = arith.constant dense<0> : tensor<1xi8>\n  cf.cond_br %p")
SWITCH = """func.func @main(%i: i32, %x: tensor<2xf32>) -> tensor<2xf32> {
  cf.switch %i : i32, [default: ^same(%x : tensor<2xf32>), 7: ^double, -2: ^end(%x, %x : tensor<2xf32>, tensor<2xf32>)]
^double:
  %0 = tosa.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
^same(%y: tensor<2xf32>):
  return %y : tensor<2xf32>
^end(%a: tensor<2xf32>, %b: tensor<2xf32>):
  %1 = tosa.sub %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}"""


def both(text: str, *inputs: object) -> list[float]:
    """What compiled code gives; the interpreter gives the same."""
    arrays = [np.asarray(x) for x in inputs]
    module = read(text)
    expected = interpret(Environment(module), "main", arrays)
    found = tosaic.load(text)(*arrays)
    np.testing.assert_array_equal(found, expected[0])
    return np.asarray(found).reshape(-1).tolist()


def test_two_arms_join() -> None:
    assert both(ABSOLUTE, np.float32(-3)) == [3.0] and both(ABSOLUTE, np.float32(2)) == [2.0]


@pytest.mark.parametrize("n, product", [(0, 1), (1, 1), (5, 120), (10, 3628800)])
def test_a_loop_multiplies(n: int, product: int) -> None:
    assert both(FACTORIAL, np.int32(n)) == [product]


@pytest.mark.parametrize("p, n, last", [(True, 3, 33), (False, 3, 33), (True, 50, 99), (False, 50, 49)])
def test_a_loop_with_two_entries_is_run(p: bool, n: int, last: int) -> None:
    x = n
    where = "a" if p else "b"
    while where != "end":
        x, where = (x * 2, "b") if where == "a" else (x - 1, "a" if x - 1 < 20 else "end")
    assert last == x and both(TWO_ENTRIES, np.array(p), np.int32(n)) == [x]


@pytest.mark.parametrize("flag, right", [(7, [2.0, 4.0]), (-2, [0.0, 0.0]), (0, [1.0, 2.0]), (1 << 30, [1.0, 2.0])])
def test_a_switch_chooses_by_number(flag: int, right: list[float]) -> None:
    assert both(SWITCH, np.int32(flag), np.array([1, 2], np.float32)) == right


@pytest.mark.parametrize("text, message", [
    (ABSOLUTE.replace("^negative, ^done(%x : tensor<f32>)", "^nowhere, ^done(%x : tensor<f32>)"), "no block ^nowhere"),
    (ABSOLUTE.replace("cf.br ^done(%2 : tensor<f32>)", "cf.br ^done"), "hands () to a block that takes (tensor<f32>)"),
    (ABSOLUTE.replace("return %y", "return %2"), "%2 is used before it is defined"),
    (ABSOLUTE.replace("cf.cond_br %1,", "cf.cond_br %x,"), "takes an i1"),
    (ABSOLUTE.replace("^done(%y", "^negative(%y"), "defined twice"),
    (FACTORIAL.replace("  return %product : tensor<i32>", "  return"), "returns 0 values")])
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(Problem) as caught:
        verify(read_module(text))
    assert message in str(caught.value) and caught.value.position is not None


def test_the_generic_form_is_the_same() -> None:
    generic = ABSOLUTE.replace("cf.cond_br %1, ^negative, ^done(%x : tensor<f32>)",
                               '"cf.cond_br"(%1, %x)[^negative, ^done] <{operandSegmentSizes = array<i32: 1, 0, 1>}> : '
                               '(i1, tensor<f32>) -> ()').replace(
        "cf.br ^done(%2 : tensor<f32>)", '"cf.br"(%2)[^done] : (tensor<f32>) -> ()')
    assert print_module(read_module(generic)) == print_module(read_module(ABSOLUTE))
