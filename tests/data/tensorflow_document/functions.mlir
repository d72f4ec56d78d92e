// The functions that function.mlir names.
func cond_func(%a : tensor<*xf32>, %b : tensor<*xf32>) -> tensor<i1> {
  %size = “tf.Size”(%a) : (tensor<*xf32>) -> i32
  %some = tf.NotEqual %size, 0 : (i32, i32) -> i1
  return %some : tensor<i1>
}
func func_foo(%a : tensor<*xf32>, %b : tensor<*xf32>) -> tensor<*xf32> {
  %x = tf.Mul %a, 2.0 : tensor<*xf32>
  return %x : tensor<*xf32>
}
func func_bar(%a : tensor<*xf32>, %b : tensor<*xf32>) -> tensor<*xf32> {
  return %b : tensor<*xf32>
}
