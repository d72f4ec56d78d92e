// Operators that only move elements are indices of the operand: a transpose, a reverse and a slice cost nothing.
func.func @main(%x: tensor<4x6xf32>) -> tensor<2x4xf32> {
  %start = tosa.const_shape {values = dense<[1, 0]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %size = tosa.const_shape {values = dense<[2, 4]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = tosa.transpose %x {perms = array<i32: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = tosa.reverse %0 {axis = 0 : i32} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %2 = tosa.slice %1, %start, %size : (tensor<6x4xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x4xf32>
  %3 = tosa.floor %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}
// -----
kernels main
  input x: float32[4, 6]
  output result0: float32[2, 4]
  kernel 0: floor slice reverse transpose
    result0: float32[2, 4] at [i0<2, i1<4] =
      floor(x[i1, -1*i0 + 4])
  steps
    compute 0
