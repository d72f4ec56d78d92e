// Integers without a scale are already what they are stored as.
func.func @main(%x: tensor<2x3xi8>) -> tensor<3x2xi8> {
  %0 = tosa.transpose %x {perms = array<i32: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return %0 : tensor<3x2xi8>
}
// -----
// unchanged
