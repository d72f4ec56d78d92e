// A check ends a run with its message before anything behind it has been written.
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  "tosaic.assert"(%c) <{message = "c must hold"}> : (tensor<i1>) -> ()
  %0 = tosa.floor %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
kernels main
  input c: bool[]
  input x: float32[4]
  output result0: float32[4]
  fault check "c must hold"
  kernel 0: floor
    result0: float32[4] at [i0<4] =
      floor(x[i0])
  steps
    check c is true, fault 0
    compute 0
