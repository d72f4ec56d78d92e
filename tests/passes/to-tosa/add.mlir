// An operator of TensorFlow becomes operators of TOSA; operands are brought to one rank, as TensorFlow broadcasts.
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = "tf.AddV2"(%x, %y) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
module {
  func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> (tensor<2x3xf32>) {
    %v0 = "tosa.const_shape"() <{values = dense<[1, 3]> : tensor<2xindex>}> : () -> !tosa.shape<2>
    %v1 = "tosa.reshape"(%y, %v0) : (tensor<3xf32>, !tosa.shape<2>) -> tensor<1x3xf32>
    %v2 = "tosa.add"(%x, %v1) : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
    return %v2 : tensor<2x3xf32>
  }
}
