func.func @main(%n: tensor<i32>, %x: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %r:2 = tf_executor.graph {
    %i, %it, %ic = tf_executor.NextIteration.Source : tensor<i32>
    %j, %jt, %jc = tf_executor.NextIteration.Source : tensor<i32>
    %zero, %zc = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %e, %ec = tf_executor.Enter %zero frame "f" parallel_iterations 10 : tensor<i32>
    %g, %gc = tf_executor.Enter %x frame "f" parallel_iterations 10 : tensor<i32>
    %l, %lc = tf_executor.Enter %n frame "f" parallel_iterations 10 constant : tensor<i32>
    %m, %mi, %mc = tf_executor.Merge %e, %i : tensor<i32>
    %o, %oi, %oc = tf_executor.Merge %g, %j : tensor<i32>
    %b, %bc = tf_executor.island wraps "tf.Less"(%m, %l) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %q, %qc = tf_executor.LoopCond %b : (tensor<i1>) -> (tensor<i1>, !tf_executor.control)
    %mf, %mt, %ms = tf_executor.Switch %m, %q : tensor<i32>
    %of, %ot, %os = tf_executor.Switch %o, %q : tensor<i32>
    %one, %onec = tf_executor.island(%ms) wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %k, %kc = tf_executor.island wraps "tf.AddV2"(%mt, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %h, %hc = tf_executor.island wraps "tf.Sub"(%ot, %mt) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tf_executor.NextIteration.Sink[%it] %k : tensor<i32>
    tf_executor.NextIteration.Sink[%jt] %h : tensor<i32>
    %x1, %xc = tf_executor.Exit %mf : tensor<i32>
    %x2, %yc = tf_executor.Exit %of : tensor<i32>
    tf_executor.fetch %x1, %x2 : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}
