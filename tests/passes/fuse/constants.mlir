// What depends on constants alone is computed while compiling, and is a constant.
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = "tosa.const"() {values = dense<[1.0, 2.0, 4.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %b = tosa.reverse %a {axis = 0 : i32} : (tensor<3xf32>) -> tensor<3xf32>
  %c = tosa.add %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %0 = tosa.sub %x, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
// -----
kernels main
  input x: float32[3]
  output result0: float32[3]
  kernel 0: sub
    result0: float32[3] at [i0<3] =
      (x[i0] - c0[i0])
      where c0: float32[3] #0 "c" = [5.0, 4.0, 5.0]
  steps
    compute 0
