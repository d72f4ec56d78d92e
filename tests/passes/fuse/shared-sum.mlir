// A sum that two kernels read is stored, and not computed twice.
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %s = tosa.reduce_sum %x {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %0 = tosa.floor %s : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %1 = tosa.abs %s : (tensor<4x1xf32>) -> tensor<4x1xf32>
  return %0, %1 : tensor<4x1xf32>, tensor<4x1xf32>
}
// -----
kernels main
  input x: float32[4, 8]
  output result0: float32[4, 1]
  output result1: float32[4, 1]
  kernel 0: reduce_sum
    s: float32[4, 1] at [i0<4, i1<1] =
      add over [k<8] of x[i0, k]
  kernel 1: floor
    result0: float32[4, 1] at [i0<4, i1<1] =
      floor(s[i0, 0])
  kernel 2: abs
    result1: float32[4, 1] at [i0<4, i1<1] =
      abs(s[i0, 0])
  steps
    compute 0
    compute 1
    compute 2
