"""`tf.If` beside TOSA: the functions that it names become the regions of a COND_IF."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic

PICK = """
func.func @main(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.If"(%p, %q, %x) <{then_branch = @outer, else_branch = @last, is_stateless = false}> : SIGNATURE
  %1 = "tf.StatelessIf"(%q, %q, %0) {then_branch = @outer, else_branch = @last} : SIGNATURE
  return %1 : tensor<2xf32>
}
func.func private @outer(%q: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.If"(%q, %q, %x) {then_branch = @twice, else_branch = @last} : SIGNATURE
  return %0 : tensor<2xf32>
}
func.func private @twice(%q: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @last(%q: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.abs %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
""".replace("SIGNATURE", "(tensor<i1>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>")


@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize("q", [False, True])
def test_functions_that_several_branches_name_run_where_they_are_named(p: bool, q: bool) -> None:
    x = np.array([-1, 3], np.float32)
    first = 2 * x if p and q else np.abs(x)
    expected = 2 * first if q else np.abs(first)
    flags = np.array(p), np.array(q)
    np.testing.assert_array_equal(tosaic.load(PICK)(*flags, x), expected)
    assert tosaic.load(PICK).main.check([[*flags, x]]).agrees


def problem(text: str) -> str:
    x = np.array([-1, 3], np.float32)
    with pytest.raises(tosaic.Problem) as caught:
        tosaic.load(text)(np.array(True), np.array(True), x)
    return str(caught.value)


def test_functions_that_name_each_other_are_refused() -> None:
    assert "name each other" in problem(PICK.replace("then_branch = @twice", "then_branch = @outer"))


def test_a_branch_must_name_a_function_of_the_module() -> None:
    assert "names @third as its else_branch, which the module" in problem(
        PICK.replace("else_branch = @last", "else_branch = @third"))


def test_a_branch_without_a_function_is_refused() -> None:
    assert "no else_branch" in problem(PICK.replace("else_branch = @last, is_stateless", "is_stateless"))


def test_branches_of_other_types_are_refused() -> None:
    text = PICK.replace("@last(%q: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = tosa.abs %x : (tensor<2xf32>) "
                        "-> tensor<2xf32>\n  return %0 : tensor<2xf32>",
                        "@last(%q: tensor<i1>, %x: tensor<2xf32>) -> tensor<i1> {\n  return %q : tensor<i1>")
    assert "tensor<i1>" in problem(text)
