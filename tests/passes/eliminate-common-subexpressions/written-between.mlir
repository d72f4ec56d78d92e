// What reads a variable has another value after a write, and so have the operators on it.
module {
  tosa.variable @v : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<1xf32> {
    %a = tosa.variable_read @v : tensor<4xf32>
    %s = tosa.reduce_sum %a {axis = 0 : i32} : (tensor<4xf32>) -> tensor<1xf32>
    tosa.variable_write @v, %x : tensor<4xf32>
    %b = tosa.variable_read @v : tensor<4xf32>
    %t = tosa.reduce_sum %b {axis = 0 : i32} : (tensor<4xf32>) -> tensor<1xf32>
    %0 = tosa.sub %s, %t : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}
// -----
// unchanged
