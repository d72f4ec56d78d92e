// A concatenation of few tensors is one expression with few conditions.
func.func @main(%x: tensor<1xf32>) -> tensor<3xf32> {
  %0 = tosa.concat %x, %x, %x {axis = 0 : i32} : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
// -----
// unchanged
