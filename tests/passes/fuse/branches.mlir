// A condition is a step that runs one list of steps or the other.
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tosa.cond_if"(%p) ({
    %1 = tosa.floor %x : (tensor<4xf32>) -> tensor<4xf32>
    "tosa.yield"(%1) : (tensor<4xf32>) -> ()
  }, {
    %1 = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32>
    "tosa.yield"(%1) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
kernels main
  input p: bool[]
  input x: float32[4]
  output result0: float32[4]
  kernel 0: floor
    result0: float32[4] at [i0<4] =
      floor(x[i0])
  kernel 1: abs
    result0: float32[4] at [i0<4] =
      abs(x[i0])
  steps
    if p
      compute 0
    else
      compute 1
