// Attributes that name axes, and numbers for each axis, are those of the source; sums are of the same elements in the same order.
func.func @main(%x: tensor<2x4x5x3xf32>) -> tensor<1x6x4x5xf32> {
  %fill = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %amounts = tosa.const_shape {values = dense<[0, 0, 1, 2, 0, 0, 0, 0]> : tensor<8xindex>} : () -> !tosa.shape<8>
  %0 = tosa.transpose %x {perms = array<i32: 0, 3, 1, 2>} : (tensor<2x4x5x3xf32>) -> tensor<2x3x4x5xf32>
  %1 = tosa.pad %0, %amounts, %fill : (tensor<2x3x4x5xf32>, !tosa.shape<8>, tensor<1xf32>) -> tensor<2x6x4x5xf32>
  %2 = tosa.reverse %1 {axis = 1 : i32} : (tensor<2x6x4x5xf32>) -> tensor<2x6x4x5xf32>
  %3 = tosa.reduce_sum %2 {axis = 0 : i32} : (tensor<2x6x4x5xf32>) -> tensor<1x6x4x5xf32>
  return %3 : tensor<1x6x4x5xf32>
}
// -----
module {
  func.func @main(%x: tensor<2x4x5x3xf32>) -> (tensor<1x6x4x5xf32>) {
    %fill = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
    %amounts = "tosa.const_shape"() <{values = dense<[0, 0, 1, 2, 0, 0, 0, 0]> : tensor<8xindex>}> : () -> !tosa.shape<8>
    %0 = "tosa.transpose"(%x) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<2x4x5x3xf32>) -> tensor<2x3x4x5xf32>
    %v1_0 = "tosa.const_shape"() <{values = dense<[0, 0, 0, 0, 0, 0, 1, 2]> : tensor<8xindex>}> : () -> !tosa.shape<8>
    %v1_1 = "tosa.pad"(%x, %v1_0, %fill) : (tensor<2x4x5x3xf32>, !tosa.shape<8>, tensor<1xf32>) -> tensor<2x4x5x6xf32>
    %1 = "tosa.transpose"(%v1_1) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
    %v2_0 = "tosa.reverse"(%v1_1) <{axis = 3 : i32}> : (tensor<2x4x5x6xf32>) -> tensor<2x4x5x6xf32>
    %2 = "tosa.transpose"(%v2_0) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
    %v3_0 = "tosa.reduce_sum"(%v2_0) <{axis = 0 : i32}> : (tensor<2x4x5x6xf32>) -> tensor<1x4x5x6xf32>
    %3 = "tosa.transpose"(%v3_0) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<1x4x5x6xf32>) -> tensor<1x6x4x5xf32>
    return %3 : tensor<1x6x4x5xf32>
  }
}
