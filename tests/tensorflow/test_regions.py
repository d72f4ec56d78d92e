"""TensorFlow's operations with regions keep the rules of its dialect, or are a Problem at their place."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.runtime.errors import Problem

T = "tensor<2xf32>"
YIELD = f'"tf.Yield"(%x) : ({T}) -> ()'


def if_region(*regions: str, operands: str = "%p", types: str = "tensor<i1>", result: str = T) -> str:
    inner = ", ".join(f"{{ {region} }}" for region in regions)
    return function(f'%0 = "tf.IfRegion"({operands}) ({inner}) {{is_stateless = true}} : ({types}) -> {result}')


def function(line: str) -> str:
    return f"func.func @main(%p: tensor<i1>, %n: tensor<i32>, %x: {T}) -> {T} {{\n  {line}\n  return %0 : {T}\n}}"


def case_region(*regions: str, operand: str = "%n : tensor<i32>") -> str:
    name, _, type = operand.partition(" : ")
    inner = ", ".join(f"{{ {region} }}" for region in regions)
    return function(f'%0 = "tf.CaseRegion"({name}) ({inner}) {{is_stateless = true}} : ({type}) -> {T}')


def while_region(condition: str, body: str, state: str = f"%x : {T}") -> str:
    name, _, type = state.partition(" : ")
    regions = f"({{ {condition} }}, {{ {body} }})"
    return function(f'%0 = "tf.WhileRegion"({name}) {regions} {{is_stateless = true}} : ({type}) -> {T}')


TEST = f'^bb0(%a: {T}): "tf.Yield"(%p) : (tensor<i1>) -> ()'
FORWARDS = f'^bb0(%a: {T}): "tf.Yield"(%p, %a) : (tensor<i1>, {T}) -> ()'
BODY = f'^bb0(%a: {T}): "tf.Yield"(%a) : ({T}) -> ()'
WRONG = {
    "three branches": (if_region(YIELD, YIELD, YIELD), "has 2 regions, found 3"),
    "one branch": (if_region(YIELD), "has 2 regions, found 1"),
    "an argument": (if_region(f'^bb0(%b: {T}): "tf.Yield"(%b) : ({T}) -> ()', YIELD), "has no arguments in region 0"),
    "two yielded": (if_region(YIELD, f'"tf.Yield"(%x, %x) : ({T}, {T}) -> ()'), "region 1 yields 2 values"),
    "another type": (if_region('"tf.Yield"(%p) : (tensor<i1>) -> ()', YIELD), "region 0 yields a tensor<i1>"),
    "two conditions": (if_region(YIELD, YIELD, operands="%p, %p", types="tensor<i1>, tensor<i1>"), "has 1 operands, found 2"),
    "a number": (if_region(YIELD, YIELD, operands="%x", types=T), "needs a tensor<i1> as its condition"),
    "no case": (case_region(), ""),
    "a case's argument": (case_region(f'^bb0(%b: {T}): "tf.Yield"(%b) : ({T}) -> ()'), "has no arguments in region 0"),
    "a vector index": (case_region(YIELD, operand=f"%x : {T}"), "needs a tensor<i32> as its index"),
    "no state": (while_region('"tf.Yield"(%p) : (tensor<i1>) -> ()', BODY), "has in its condition 0 arguments"),
    "no condition": (while_region(BODY, BODY), "needs a tensor<i1> as what its condition yields"),
    "more than the condition": (while_region(f'^bb0(%a: {T}): "tf.Yield"(%p, %x) : (tensor<i1>, {T}) -> ()', BODY),
                                "may forward"),
    "a body without a value": (while_region(TEST, f'^bb0(%a: {T}): "tf.Yield"() : () -> ()'), "its body yields 0 values"),
    "a body of another type": (while_region(TEST, '^bb0(%a: tensor<i1>): "tf.Yield"(%a) : (tensor<i1>) -> ()'),
                               "has in its body a"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_breaks_a_rule_is_refused_at_its_place(name: str) -> None:
    text, message = WRONG[name]
    with pytest.raises(Problem) as caught:
        tosaic.load(text)
    assert message in caught.value.message and caught.value.position is not None


@pytest.mark.parametrize("p, right", [(True, [-1.0, -2.0]), (False, [1.0, 2.0])])
def test_branches_capture_what_they_read(p: bool, right: list[float]) -> None:
    negated = f'%1 = "tf.Neg"(%x) : ({T}) -> {T} "tf.Yield"(%1) : ({T}) -> ()'
    found = tosaic.load(if_region(negated, YIELD))(np.array(p), np.int32(0), np.array([1, 2], np.float32))
    assert found.tolist() == right


def test_a_condition_may_forward_its_arguments() -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %one = "tf.Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %0 = "tf.WhileRegion"(%n) ({
  ^bb0(%a: tensor<i32>):
    %1 = "tf.Less"(%a, %limit) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "tf.Yield"(%1, %a) : (tensor<i1>, tensor<i32>) -> ()
  }, {
  ^bb0(%a: tensor<i32>):
    %1 = "tf.AddV2"(%a, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "tf.Yield"(%1) : (tensor<i32>) -> ()
  }) {is_stateless = true} : (tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}""".replace("  %0 =", '  %limit = "tf.Const"() {value = dense<10> : tensor<i32>} : () -> tensor<i32>\n  %0 =', 1)
    assert tosaic.load(text)(np.int32(0)).item() == 12


@pytest.mark.parametrize("shape", ["?x0x3", "0x?", "?x0"])
@pytest.mark.parametrize("operation", ["reshape", "tile", "slice", "concat"])
def test_a_tensor_without_elements_is_refused_beside_an_open_extent(shape: str, operation: str) -> None:
    rank = shape.count("x") + 1
    numbers = f"tosa.const_shape {{values = dense<2> : tensor<{rank}xindex>}} : () -> !tosa.shape<{rank}>"
    types = {"reshape": f"(tensor<{shape}xf32>, !tosa.shape<{rank}>)", "tile": f"(tensor<{shape}xf32>, !tosa.shape<{rank}>)",
             "slice": f"(tensor<{shape}xf32>, !tosa.shape<{rank}>, !tosa.shape<{rank}>)",
             "concat": f"(tensor<{shape}xf32>, tensor<{shape}xf32>)"}[operation]
    operands = {"reshape": "%x, %s", "tile": "%x, %s", "slice": "%x, %s, %s", "concat": "%x, %x"}[operation]
    attributes = " {axis = 0 : i32}" if operation == "concat" else ""
    text = (f"func.func @main(%x: tensor<{shape}xf32>) -> tensor<*xf32> {{\n  %s = {numbers}\n"
            f'  %0 = "tosa.{operation}"({operands}){attributes} : {types} -> tensor<*xf32>\n  return %0 : tensor<*xf32>\n}}')
    with pytest.raises(Problem) as caught:
        tosaic.load(text)
    assert "has no elements" in caught.value.message
