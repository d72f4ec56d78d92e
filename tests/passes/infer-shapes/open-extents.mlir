// An extent that is left open gets what the operators' type rules give.
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> tensor<?x?xf32> {
  %0 = tosa.concat %x, %y {axis = 1 : i32} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<?x?xf32>
  %1 = tosa.exp %0 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
// -----
module {
  func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> (tensor<2x8xf32>) {
    %0 = "tosa.concat"(%x, %y) <{axis = 1 : i32}> : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
    %1 = "tosa.exp"(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    return %1 : tensor<2x8xf32>
  }
}
