func.func @main(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> tensor<4x1xf32> {
  %0 = tosa.abs %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = tosa.reduce_sum %0 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %2 = tosa.abs %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = tosa.reduce_sum %2 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %4 = tosa.reduce_max %y {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %5 = tosa.add %1, %3 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = tosa.sub %5, %4 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %6 : tensor<4x1xf32>
}
