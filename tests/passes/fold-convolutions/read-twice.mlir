// Where something else reads the convolution's result, its weights stay.
func.func @main(%x: tensor<1x4x4x1xf32>) -> (tensor<1x4x4x1xf32>, tensor<1x4x4x1xf32>) {
  %w = "tosa.const"() {values = dense<[[[[2.0]]]]> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %b = "tosa.const"() {values = dense<[0.5]> : tensor<1xf32>} : () -> tensor<1xf32>
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %s = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %f = "tosa.const"() {values = dense<4.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %c = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<1x4x4x1xf32>, tensor<1x1x1x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x1xf32>
  %m = tosa.mul %c, %f, %s : (tensor<1x4x4x1xf32>, tensor<1x1x1x1xf32>, tensor<1xi8>) -> tensor<1x4x4x1xf32>
  return %c, %m : tensor<1x4x4x1xf32>, tensor<1x4x4x1xf32>
}
// -----
// unchanged
