// Zeros around values that may be below zero do decide a maximum.
func.func @main(%x: tensor<1x6x6x2xf32>) -> tensor<1x4x4x2xf32> {
  %c = tosa.clamp %x {min_val = -1.0 : f32, max_val = 6.0 : f32} : (tensor<1x6x6x2xf32>) -> tensor<1x6x6x2xf32>
  %amounts = tosa.const_shape {values = dense<[0, 0, 1, 1, 1, 1, 0, 0]> : tensor<8xindex>} : () -> !tosa.shape<8>
  %fill = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %p = tosa.pad %c, %amounts, %fill : (tensor<1x6x6x2xf32>, !tosa.shape<8>, tensor<1xf32>) -> tensor<1x8x8x2xf32>
  %0 = tosa.max_pool2d %p {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x2xf32>) -> tensor<1x4x4x2xf32>
  return %0 : tensor<1x4x4x2xf32>
}
// -----
// unchanged
