// What is f64 between f32 arguments and f32 results becomes f32.
func.func @main(%x: tensor<4xf32>) -> tensor<1xf32> {
  %a = tosa.cast %x : (tensor<4xf32>) -> tensor<4xf64>
  %s = tosa.reduce_sum %a {axis = 0 : i32} : (tensor<4xf64>) -> tensor<1xf64>
  %0 = tosa.cast %s : (tensor<1xf64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
// -----
module {
  func.func @main(%x: tensor<4xf32>) -> (tensor<1xf32>) {
    %a = "tosa.identity"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %s = "tosa.reduce_sum"(%a) <{axis = 0 : i32}> : (tensor<4xf32>) -> tensor<1xf32>
    %0 = "tosa.identity"(%s) : (tensor<1xf32>) -> tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}
