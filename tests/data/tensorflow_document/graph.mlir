// The outline of a graph: its operators stand for any, and no dialect has them.
func outline(%feeds : tensor<*xf32>) -> tensor<*xf32> {
  %feed:2 = “tf.Split2”(%feeds) : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>)
%fetches = tf_executor.graph : tensor<*xf32> {
  // The control result is not in the type.
  %0, %ctl0 = tf_executor.opA %feed#0, %feed#1 : tensor<*xf32>
  %1, %ctl1 = tf_executor.opB : tensor<*xf32>
  %2, %ctl2 = tf_executor.opC %1, %ctl0 : tensor<*xf32>
  %3, %ctl3 = tf_executor.opD %2 : tensor<*xf32>
  tf_executor.fetch %3 : tensor<*xf32>
} // the end of the “tf_executor.graph"
  return %fetches : tensor<*xf32>
}
