func.func @main(%x: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %h = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
  %r = tf_executor.graph {
    %f, %t, %c = tf_executor.Switch %x, %p : (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, !tf_executor.control)
    %i, %ic = tf_executor.island wraps "tf.Identity"(%t) : (tensor<2xf32>) -> tensor<2xf32>
    %w = tf_executor.island wraps "tf.AssignVariableOp"(%h, %t) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
    %j = tf_executor.ControlTrigger %w
    %v, %vc = tf_executor.island(%j) wraps "tf.ReadVariableOp"(%h) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
    tf_executor.fetch %v : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
