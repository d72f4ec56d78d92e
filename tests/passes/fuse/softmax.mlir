// A softmax is one kernel: its sums are of the row that the result is of (`fuse/row_fusion.py`).
func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %s = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %m = tosa.reduce_max %x {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %d = tosa.sub %x, %m : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
  %e = tosa.exp %d : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %t = tosa.reduce_sum %e {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %r = tosa.reciprocal %t : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %0 = tosa.mul %e, %r, %s : (tensor<4x16xf32>, tensor<4x1xf32>, tensor<1xi8>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
// -----
kernels main
  input x: float32[4, 16]
  output result0: float32[4, 16]
  kernel 0: mul reciprocal reduce_sum exp sub reduce_max
    result0: float32[4, 16] at [i0<4, i1<16] =
      %0 := maximum over [k<16] of x[i0, k]
      %1 := min(max((x[i0, i1] - %0), -105.0), 89.5)
      %2 := (fma(%1, 1.4426950216293335, 12582912.0) - 12582912.0)
      %3 := fma(%2, -1.428606765330187e-06, fma(%2, -0.693145751953125, %1))
      %4 := min(max((x[i0, k_0] - %0), -105.0), 89.5)
      %5 := (fma(%4, 1.4426950216293335, 12582912.0) - 12582912.0)
      %6 := fma(%5, -1.428606765330187e-06, fma(%5, -0.693145751953125, %4))
      (scaleb(fma(%3, fma(fma(fma(fma(fma(0.0013871878618374467, %3, 0.00836687721312046), %3, 0.041667431592941284), %3, 0.16666541993618011), %3, 0.4999999701976776), %3, 1.0), 1.0), %2) * (1.0 / add over [k_0<16] of scaleb(fma(%6, fma(fma(fma(fma(fma(0.0013871878618374467, %6, 0.00836687721312046), %6, 0.041667431592941284), %6, 0.16666541993618011), %6, 0.4999999701976776), %6, 1.0), 1.0), %5)))
  steps
    compute 0
