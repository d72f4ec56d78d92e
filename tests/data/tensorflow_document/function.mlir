/// A function of the `tf` dialect as the dialects' design document writes one:
/// operators without quotes, one type for all, no sign before the name.
func some_function(%input : tensor<*xf32>) -> tensor<*xf32> {
  // Both operands and the result are of the type behind the colon.
  %added = tf.Add %input, %input : tensor<*xf32>
  %three = constant splat<tensor<f32>, 3.0>
  %mul = tf.Mul %input, %three : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>

  // Three functions: the condition’s and two branches’.
  %value = "tf.If”(%added, %mul)
             {cond: @cond_func, true_branch: @func_foo, false_branch: @func_bar}
                 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>

  return %value : tensor<*xf32>
}
