// A variable is a buffer of the process; its new contents are written in place where each element needs its own old one
// alone.
module {
  tosa.variable @total = dense<0.0> : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %old = tosa.variable_read @total : tensor<4xf32>
    %new = tosa.add %old, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tosa.variable_write @total, %new : tensor<4xf32>
    return %new : tensor<4xf32>
  }
}
// -----
kernels main
  input x: float32[4]
  output result0: float32[4]
  variable total: float32[4] = [0.0, 0.0, 0.0, 0.0]
  fault variable "variable @total is read before it was written" help "give it an initial value, write it first, or set it from Python"
  kernel 0: add
    result0: float32[4] at [i0<4] =
      (total[i0] + x[i0])
  kernel 1: variable_write copy
    total: float32[4] at [i0<4] =
      result0[i0]
  steps
    check total is written, fault 0
    compute 0
    compute 1
    mark total written
