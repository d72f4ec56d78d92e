// A reshape moves where the axes that it joins lie beside each other in the source: the tokens of a picture need no transpose.
func.func @main(%x: tensor<1x4x5x3xf32>) -> tensor<1x20x3xf32> {
  %s = tosa.const_shape {values = dense<[1, 3, 20]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %0 = tosa.transpose %x {perms = array<i32: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = tosa.reshape %0, %s : (tensor<1x3x4x5xf32>, !tosa.shape<3>) -> tensor<1x3x20xf32>
  %2 = tosa.transpose %1 {perms = array<i32: 0, 2, 1>} : (tensor<1x3x20xf32>) -> tensor<1x20x3xf32>
  return %2 : tensor<1x20x3xf32>
}
// -----
module {
  func.func @main(%x: tensor<1x4x5x3xf32>) -> (tensor<1x20x3xf32>) {
    %s = "tosa.const_shape"() <{values = dense<[1, 3, 20]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %0 = "tosa.transpose"(%x) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
    %v1_0 = "tosa.const_shape"() <{values = dense<[1, 20, 3]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %v1_1 = "tosa.reshape"(%x, %v1_0) : (tensor<1x4x5x3xf32>, !tosa.shape<3>) -> tensor<1x20x3xf32>
    %1 = "tosa.transpose"(%v1_1) <{perms = array<i32: 0, 2, 1>}> : (tensor<1x20x3xf32>) -> tensor<1x3x20xf32>
    return %v1_1 : tensor<1x20x3xf32>
  }
}
