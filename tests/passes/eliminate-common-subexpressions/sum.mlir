// A sum of exponentials that is written twice is computed once; `prune` drops what nobody reads any more.
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tosa.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = tosa.reduce_sum %e {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %f = tosa.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = tosa.reduce_sum %f {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %u = tosa.add %s, %t : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %0 = tosa.sub %x, %u : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
// -----
module {
  func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %e = "tosa.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = "tosa.reduce_sum"(%e) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %f = "tosa.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %t = "tosa.reduce_sum"(%e) <{axis = 1 : i32}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %u = "tosa.add"(%s, %s) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %0 = "tosa.sub"(%x, %u) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
