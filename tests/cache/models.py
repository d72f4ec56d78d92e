"""Small models for the tests of the cache."""
from __future__ import annotations

ADD = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = "tosa.const"() <{values = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}> : () -> tensor<4xf32>
  %y = tosa.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""

SEVERAL = """module {
  tosa.variable @cache.total = dense<[5.0, 0.0]> : tensor<2xf32>
  tosa.variable @cache.unset : tensor<2xf32>
  func.func @count(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = tosa.variable_read @cache.total : tensor<2xf32>
    %1 = tosa.add %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    tosa.variable_write @cache.total, %1 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func @fails(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = tosa.variable_read @cache.unset : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func @both(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = tosa.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %1 = tosa.abs %x : (tensor<2xf32>) -> tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32>
  }
}
"""

OPEN = """func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %z = tosa.add %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %z : tensor<?x3xf32>
}
"""


def product(extent: int) -> str:
    """A matrix product with weights: jump tables, vectors, constants in the code."""
    a, b, c = f"tensor<1x{extent}x64xf32>", "tensor<1x64x64xf32>", "tensor<1xf32>"
    rows = ", ".join(f"[{', '.join(str((i * 7 + j) % 11 - 5) + '.0' for j in range(64))}]" for i in range(64))
    return f"""func.func @main(%a: {a}) -> {a} {{
  %b = "tosa.const"() <{{values = dense<[[{rows}]]> : {b}}}> : () -> {b}
  %z = "tosa.const"() <{{values = dense<0.0> : {c}}}> : () -> {c}
  %m = "tosa.matmul"(%a, %b, %z, %z) : ({a}, {b}, {c}, {c}) -> {a}
  %t = tosa.tanh %m : ({a}) -> {a}
  return %t : {a}
}}
"""
