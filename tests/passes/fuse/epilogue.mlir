// A sum and what is done with it are one kernel; an operand that is read for many sums is stored before, if it takes
// work.
func.func @main(%x: tensor<1x4x8xf32>, %y: tensor<1x8x3xf32>) -> tensor<1x4x3xf32> {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %e = tosa.exp %x : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  %0 = tosa.matmul %e, %y, %z, %z : (tensor<1x4x8xf32>, tensor<1x8x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x3xf32>
  %1 = tosa.floor %0 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  return %1 : tensor<1x4x3xf32>
}
// -----
kernels main
  input x: float32[1, 4, 8]
  input y: float32[1, 8, 3]
  output result0: float32[1, 4, 3]
  kernel 0: exp
    e: float32[1, 4, 8] at [i0<1, i1<4, i2<8] =
      %0 := min(max(x[0, i1, i2], -105.0), 89.5)
      %1 := (fma(%0, 1.4426950216293335, 12582912.0) - 12582912.0)
      %2 := fma(%1, -1.428606765330187e-06, fma(%1, -0.693145751953125, %0))
      scaleb(fma(%2, fma(fma(fma(fma(fma(0.0013871878618374467, %2, 0.00836687721312046), %2, 0.041667431592941284), %2, 0.16666541993618011), %2, 0.4999999701976776), %2, 1.0), 1.0), %1)
  kernel 1: floor matmul
    result0: float32[1, 4, 3] at [i0<1, i1<4, i2<3] =
      floor(add over [c<8] of (e[0, i1, c] * y[0, c, i2]))
  steps
    compute 0
    compute 1
