// A loop as TensorFlow 1's executor runs it: it decides behind its work, with a value that no pattern of
// tf.while_loop has. TensorFlow's own functionaliser refuses it.
func.func @countdown(%start: tensor<i32>) -> tensor<*xi32> {
  %result = tf_executor.graph {
    %enter, %c0 = tf_executor.Enter %start frame "loop" : tensor<i32>
    %next, %token, %c1 = tf_executor.NextIteration.Source : tensor<*xi32>
    %count, %index, %c2 = tf_executor.Merge %enter, %next : (tensor<i32>, tensor<*xi32>) -> (tensor<i32>, tensor<i32>, !tf_executor.control)
    %one, %c3 = tf_executor.island(%c2) wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %zero, %c4 = tf_executor.island(%c2) wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %less, %c5 = tf_executor.island wraps "tf.Sub"(%count, %one) : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
    %again, %c6 = tf_executor.island wraps "tf.NotEqual"(%less, %zero) : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
    %false, %true, %c7 = tf_executor.Switch %less, %again : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>, !tf_executor.control)
    tf_executor.NextIteration.Sink[%token] %true : tensor<*xi32>
    %exit, %c8 = tf_executor.Exit %false : tensor<*xi32>
    tf_executor.fetch %exit : tensor<*xi32>
  }
  return %result : tensor<*xi32>
}
