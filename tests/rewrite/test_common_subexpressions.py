"""Common subexpressions: a costly operator is computed once for the same operands, and never where that could be seen."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.jit.models.model import Model
from tosaic.lowering.pipeline import rewritten

T = "tensor<4x8xf32>"


def module(body: str, result: str = "tensor<4x1xf32>") -> Model:
    return tosaic.load(f"func.func @main(%x: {T}, %y: {T}) -> {result} {{\n{body}\n  return %r : {result}\n}}")


def count(model: Model, name: str) -> int:
    return sum(o.op.name == name for o in rewritten(model.module).function("main").body.walk())


def total(number: int, x: str = "%x") -> str:
    return f"""  %e{number} = tosa.exp {x} : ({T}) -> {T}
  %s{number} = tosa.reduce_sum %e{number} {{axis = 1 : i32}} : ({T}) -> tensor<4x1xf32>
"""


def test_a_sum_of_exponentials_that_is_used_twice_is_one_kernel() -> None:
    model = module(total(0) + total(1) + "  %r = tosa.add %s0, %s1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>")
    assert count(model, "tosa.exp") == count(model, "tosa.reduce_sum") == 1
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    assert model.main.lower().show("kernels").count("add over") == 1
    np.testing.assert_allclose(model(x, x), 2 * np.exp(x).sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("second", [total(1, "%y"), total(1).replace("axis = 1", "axis = 1").replace("exp", "tanh")])
def test_other_operands_or_another_operator_are_no_duplicate(second: str) -> None:
    model = module(total(0) + second + "  %r = tosa.add %s0, %s1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>")
    assert count(model, "tosa.reduce_sum") == 2


def test_attributes_that_are_equal_and_not_the_same_are_distinguished() -> None:
    """The reciprocals of 0.0 and -0.0."""
    body = f"""  %a = tosa.clamp %x {{min_val = 0.0 : f32, max_val = 1.0 : f32}} : ({T}) -> {T}
  %b = tosa.clamp %x {{min_val = -0.0 : f32, max_val = 1.0 : f32}} : ({T}) -> {T}
  %c = tosa.reciprocal %a : ({T}) -> {T}
  %d = tosa.reciprocal %b : ({T}) -> {T}
  %r = tosa.sub %c, %d : ({T}, {T}) -> {T}"""
    assert count(module(body, T), "tosa.reciprocal") == 2


def test_cheap_operators_stay_where_they_are() -> None:
    body = f"""  %a = tosa.add %x, %y : ({T}, {T}) -> {T}
  %b = tosa.add %x, %y : ({T}, {T}) -> {T}
  %r = tosa.sub %a, %b : ({T}, {T}) -> {T}"""
    assert count(module(body, T), "tosa.add") == 2


def test_a_read_after_a_write_is_another_value() -> None:
    text = """module {
  tosa.variable @v = dense<1.0> : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = "tosa.variable_read"() <{name = "v"}> : () -> tensor<4xf32>
    %b = tosa.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    "tosa.variable_write"(%x) <{name = "v"}> : (tensor<4xf32>) -> ()
    %c = "tosa.variable_read"() <{name = "v"}> : () -> tensor<4xf32>
    %d = tosa.exp %c : (tensor<4xf32>) -> tensor<4xf32>
    %r = tosa.sub %d, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32> } }"""
    model = tosaic.load(text, context=tosaic.Context("cse"))
    assert count(model, "tosa.exp") == 2
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(model(x), np.exp(x) - np.exp(np.float32(1)), rtol=1e-5)


def test_what_a_branch_has_computed_is_not_known_behind_it_but_what_stands_before_is_inside() -> None:
    body = f"""  %t = "tosa.const"() <{{values = dense<true> : tensor<i1>}}> : () -> tensor<i1>
  %b = tosa.exp %y : ({T}) -> {T}
  %i = tosa.cond_if %t (%m = %x) : tensor<i1> ({T}) -> {T} {{
    %e = tosa.exp %x : ({T}) -> {T}
    %f = tosa.exp %y : ({T}) -> {T}
    %g = tosa.add %e, %f : ({T}, {T}) -> {T}
    tosa.yield %g : {T}
  }} else {{
    tosa.yield %x : {T}
  }}
  %a = tosa.exp %x : ({T}) -> {T}
  %p = tosa.add %i, %a : ({T}, {T}) -> {T}
  %r = tosa.add %p, %b : ({T}, {T}) -> {T}"""
    model = module(body, T)
    assert count(model, "tosa.exp") == 3
    x, y = np.random.default_rng(1).standard_normal((2, 4, 8)).astype(np.float32)
    np.testing.assert_allclose(model(x, y), 2 * np.exp(x) + 2 * np.exp(y), rtol=1e-6)
