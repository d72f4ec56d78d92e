// A reshape that joins axes which do not lie beside each other in the source stays behind the transpose.
func.func @main(%x: tensor<1x4x5x3xf32>) -> tensor<1x60xf32> {
  %s = tosa.const_shape {values = dense<[1, 60]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = tosa.transpose %x {perms = array<i32: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = tosa.reshape %0, %s : (tensor<1x3x4x5xf32>, !tosa.shape<2>) -> tensor<1x60xf32>
  return %1 : tensor<1x60xf32>
}
// -----
// unchanged
