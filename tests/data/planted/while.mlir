func.func @main(%n: tensor<i32>, %x: tensor<i32>) -> tensor<i32> {
  %0:2 = "tf.While"(%n, %x) <{cond = @test, body = @step, is_stateless = true}> : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  %1 = "tf.Neg"(%0#1) : (tensor<i32>) -> tensor<i32>
  return %1 : tensor<i32>
}
func.func private @test(%n: tensor<i32>, %x: tensor<i32>) -> tensor<i1> {
  %z = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %0 = "tf.Greater"(%n, %z) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @step(%n: tensor<i32>, %x: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %o = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %0 = "tf.Sub"(%n, %o) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %1 = "tf.Mul"(%x, %n) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}
