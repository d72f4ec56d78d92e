// Two islands that capture values, one of them in the short form.
func islands(%0 : tensor<*xf32>, %1 : tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
%fetches:2 = tf_executor.graph : tensor<*xf32>, tensor<*xf32> {
  %ctl0 = tf_executor.ControlTrigger
%2, %ctl2 = tf_executor.island (%ctl0)
                  : (tensor<*xf32>, !tf_executor<"control">) -> tensor<*xf32> {
  %added = tf.Add %1, %0 : tensor<*xf32>
  %mul = tf.Mul %added, %1 :tensor<*xf32>

  // What the island gives back.
  tf_executor.yield %mul : tensor<*xf32>
}
%3, %ctl3 = tf_executor.island(%ctl0) wraps tf.Add %1, %0 : tensor<*xf32>
  tf_executor.fetch %2, %3 : tensor<*xf32>, tensor<*xf32>
}
  return %fetches#0, %fetches#1 : tensor<*xf32>, tensor<*xf32>
}
