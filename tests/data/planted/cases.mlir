func.func @main(%x: tensor<2xf32>, %k: tensor<i32>) -> tensor<2xf32> {
  %r = tf_executor.graph {
    %s:3, %c = tf_executor._SwitchN %x, %k of 3 : tensor<2xf32>
    %a, %ac = tf_executor.island wraps "tf.Neg"(%s#0) : (tensor<2xf32>) -> tensor<2xf32>
    %b, %bc = tf_executor.island wraps "tf.Square"(%s#1) : (tensor<2xf32>) -> tensor<2xf32>
    %d, %dc = tf_executor.island wraps "tf.Exp"(%s#2) : (tensor<2xf32>) -> tensor<2xf32>
    %m, %i, %mc = tf_executor.Merge %a, %b, %d : tensor<2xf32>
    tf_executor.fetch %m : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
