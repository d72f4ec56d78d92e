func.func @main(%x: tensor<2xf32>, %p: tensor<i1>) -> (tensor<2xf32>, tensor<i32>) {
  %r:2 = tf_executor.graph {
    %f, %t, %c = "tf_executor.Switch"(%x, %p) : (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, !tf_executor.control)
    %n, %nc = tf_executor.island wraps "tf.Neg"(%t) : (tensor<2xf32>) -> tensor<2xf32>
    %s, %sc = tf_executor.island wraps "tf.Square"(%f) : (tensor<2xf32>) -> tensor<2xf32>
    %m, %i, %mc = "tf_executor.Merge"(%n, %s) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>, !tf_executor.control)
    tf_executor.fetch %m, %i : tensor<2xf32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<2xf32>, tensor<i32>
}
