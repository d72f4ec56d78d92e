// A write stays before a read of the new contents.
module {
  tosa.variable @v : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %old = tosa.variable_read @v : tensor<4xf32>
    tosa.variable_write @v, %x : tensor<4xf32>
    %0 = tosa.variable_read @v : tensor<4xf32>
    %1 = tosa.sub %0, %old : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
// unchanged
