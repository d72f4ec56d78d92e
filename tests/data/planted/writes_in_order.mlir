func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %h = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
  %r = tf_executor.graph {
    %n, %nc = tf_executor.island wraps "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %a = tf_executor.island wraps "tf.AssignVariableOp"(%h, %n) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
    %b = tf_executor.island(%a) wraps "tf.AssignVariableOp"(%h, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
    %v, %vc = tf_executor.island(%b) wraps "tf.ReadVariableOp"(%h) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
    tf_executor.fetch %v : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
