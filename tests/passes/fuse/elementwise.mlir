// Elementwise operators are one expression: only the result is stored.
func.func @main(%x: tensor<4x3xf32>, %y: tensor<1x3xf32>) -> tensor<4x3xf32> {
  %0 = tosa.add %x, %y : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  %1 = tosa.floor %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = tosa.abs %1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}
// -----
kernels main
  input x: float32[4, 3]
  input y: float32[1, 3]
  output result0: float32[4, 3]
  kernel 0: abs floor add
    result0: float32[4, 3] at [i0<4, i1<3] =
      abs(floor((x[i0, i1] + y[0, i1])))
  steps
    compute 0
