func.func @main(%x: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %a = "tf.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %0 = "tf.If"(%p, %a) <{then_branch = @then, else_branch = @else, is_stateless = true}> : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @then(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Square"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @else(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
