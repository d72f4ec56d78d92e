// A rescale by channel is of the last axis, and stays.
func.func @main(%x: tensor<1x2x2x3xi32>) -> tensor<1x3x2x2xi8> {
  %m = "tosa.const"() {values = dense<[1073741824, 1073741825]> : tensor<2xi32>} : () -> tensor<2xi32>
  %s = "tosa.const"() {values = dense<[35, 36]> : tensor<2xi8>} : () -> tensor<2xi8>
  %zi = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %zo = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.transpose %x {perms = array<i32: 0, 3, 1, 2>} : (tensor<1x2x2x3xi32>) -> tensor<1x3x2x2xi32>
  %1 = tosa.rescale %0, %m, %s, %zi, %zo {scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x3x2x2xi32>, tensor<2xi32>, tensor<2xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x3x2x2xi8>
  return %1 : tensor<1x3x2x2xi8>
}
// -----
// unchanged
