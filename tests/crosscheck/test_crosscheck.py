"""The cross-check: compiled code that is wrong is found, and the first operator that differs is named with its place."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.tools.check.crosscheck import check_state
from tosaic.lowering.dialects.tosa import binary, unary
from tosaic.lowering.dialects.tosa.compliance import bound, differences
from tosaic.lowering.graph.types import F32

TEXT = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tosa.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = tosa.add %0, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = tosa.sub %1, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
"""
STATE = """
module {
  tosa.variable @n = dense<1> : tensor<2xi32>
  func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
    %0 = tosa.variable_read @n : tensor<2xi32>
    %1 = tosa.add %0, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    tosa.variable_write @n, %1 : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
"""
CALLS = [[np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)]]


def wrong(monkeypatch: pytest.MonkeyPatch, op: Any, change: Any) -> None:
    """Compile an operator as something else, everywhere but in the reference."""
    right = op.element

    def element(self: Any, *operands: Any) -> Any:
        inner = right(self, *operands)
        return lambda *index: change(inner(*index))

    monkeypatch.setattr(op, "element", element)


def test_right_code_agrees_and_says_how_much_was_compared() -> None:
    found = tosaic.load(TEXT).main.check(CALLS * 3)
    assert found.agrees and found.calls == 3 and found.operators == 9 and found.elements == 54


def test_the_first_operator_that_differs_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, binary.Add, lambda e: e + 0.001)
    found = tosaic.load(TEXT, name="t.mlir").main.check(CALLS)
    assert found.difference is not None
    assert found.difference.where == "%1 = tosa.add" and str(found.difference.position) == "t.mlir:4:8"
    assert "6 of 6 elements differ in call 0" in str(found)


def test_an_error_of_two_units_in_the_last_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, binary.Sub, lambda e: e * (1 + 2.0**-22))
    found = tosaic.load(TEXT).main.check(CALLS)
    assert found.difference is not None and found.difference.where == "%2 = tosa.sub"


def test_wrong_state_is_found_though_the_outputs_of_the_call_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, binary.Add, lambda e: e + 1)
    found = tosaic.load(STATE).main.check([[np.array([1, 2], np.int32)]])
    assert found.difference is not None and found.difference.where == "%1 = tosa.add"


def test_the_bound_of_an_operator_is_the_specifications() -> None:
    x = np.array([0.0, 1.0, -10.0], np.float32)
    expected = np.exp(x)
    allowed = bound(unary.Exp(), [x], expected, F32)
    assert allowed is not None
    np.testing.assert_allclose(allowed / (expected * 2.0**-23), 3 + 2 * np.abs(x) + 1, rtol=1e-6)
    assert bound(binary.Add(), [x, x], x + x, F32) is None


def test_differences_take_nan_and_signed_zero_as_equal() -> None:
    a = np.array([np.nan, 0.0, np.inf, 1.0], np.float32)
    e = np.array([np.nan, -0.0, np.inf, np.nextafter(np.float32(1), np.float32(2))], np.float32)
    np.testing.assert_array_equal(differences(a, e, None), [False, False, False, True])
    np.testing.assert_array_equal(differences(a, e, np.full(4, 1e-6)), [False, False, False, False])




LOOP = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %zero = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %0 = tosa.while_loop (%i = %zero) : (tensor<i32>) -> tensor<i32> {
    %1 = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %1 : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>):
    %2 = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %2 : tensor<i32>
  }
  %3 = tosa.sub %0, %0 : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %3 : tensor<i32>
}
"""


def test_a_loop_whose_result_is_wrong_is_named_though_the_output_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, binary.Add, lambda e: e + 1)
    found = tosaic.load(LOOP).main.check([[np.array(3, np.int32)]])
    assert found.difference is not None and found.difference.where == "%0 = tosa.while_loop"


def test_a_read_of_a_variable_is_compared_too() -> None:
    found = tosaic.load(STATE).main.check([[np.array([1, 2], np.int32)]] * 2)
    assert found.agrees and found.operators == 4 and found.elements == 8


def test_a_variable_that_only_one_side_has_written_is_a_difference() -> None:
    found = check_state({"n": None}, {"n": np.zeros(2, np.int32)}, 0)
    assert found is not None and "has not been written by compiled code" in found.where
    found = check_state({"n": np.zeros(2, np.int32)}, {"n": None}, 0)
    assert found is not None and "has been written by compiled code alone" in found.where
    assert check_state({"n": None}, {"n": None}, 0) is None
