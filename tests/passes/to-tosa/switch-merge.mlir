// Switch and Merge of an executor graph become a COND_IF.
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tf_executor.graph {
    %s:3 = tf_executor.Switch %x, %p : (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, !tf_executor.control)
    %f:2 = tf_executor.island wraps "tf.Neg"(%s#0) : (tensor<2xf32>) -> tensor<2xf32>
    %t:2 = tf_executor.island wraps "tf.Exp"(%s#1) : (tensor<2xf32>) -> tensor<2xf32>
    %m:3 = tf_executor.Merge %f#0, %t#0 : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>, !tf_executor.control)
    tf_executor.fetch %m#0 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
// -----
module {
  func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>) {
    %v0 = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
    %v1 = "tosa.cond_if"(%p) ({
      %then1.0 = "tosa.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      "tosa.yield"(%then1.0) : (tensor<2xf32>) -> ()
    }, {
      %else2.0 = "tosa.negate"(%x, %v0, %v0) : (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      "tosa.yield"(%else2.0) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    return %v1 : tensor<2xf32>
  }
}
