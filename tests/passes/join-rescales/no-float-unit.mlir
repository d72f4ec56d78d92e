// A processor without a unit for floats computes the sum of rescaled bytes in integers.
// options: --target cortex-m0plus
func.func @main(%x: tensor<8xi8>, %y: tensor<8xi8>) -> tensor<8xi8> {
  %m = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
  %n = "tosa.const"() {values = dense<1500450271> : tensor<1xi32>} : () -> tensor<1xi32>
  %s = "tosa.const"() {values = dense<10> : tensor<1xi8>} : () -> tensor<1xi8>
  %u = "tosa.const"() {values = dense<11> : tensor<1xi8>} : () -> tensor<1xi8>
  %l = "tosa.const"() {values = dense<50> : tensor<1xi8>} : () -> tensor<1xi8>
  %z = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %o = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %w = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %a = tosa.rescale %x, %m, %s, %z, %w {scale32 = true, rounding_mode = DOUBLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<8xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<8xi32>
  %b = tosa.rescale %y, %n, %u, %z, %w {scale32 = true, rounding_mode = DOUBLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<8xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<8xi32>
  %c = tosa.add %a, %b : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  %0 = tosa.rescale %c, %m, %l, %w, %o {scale32 = true, rounding_mode = DOUBLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<8xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<8xi8>
  return %0 : tensor<8xi8>
}
// -----
// unchanged
