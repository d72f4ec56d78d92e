// Three eighths of every eighth byte lie halfway between two integers: they are rounded as integers.
func.func @main(%x: tensor<8xi8>) -> tensor<8xi8> {
  %m = "tosa.const"() {values = dense<805306368> : tensor<1xi32>} : () -> tensor<1xi32>
  %s = "tosa.const"() {values = dense<31> : tensor<1xi8>} : () -> tensor<1xi8>
  %z = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.rescale %x, %m, %s, %z, %z {scale32 = true, rounding_mode = DOUBLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<8xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<8xi8>
  return %0 : tensor<8xi8>
}
// -----
// unchanged
