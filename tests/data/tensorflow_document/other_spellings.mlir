// Other spellings that the document has: types, Send and Recv, SwitchN.
func spellings(%x : f32, %index : i32, %s : tensor<2x!tf.string>) -> (f32, f32) {
%fetches:2 = tf_executor.graph : f32, f32 {
  %a:3 = tf_executor.SwitchN %x, %index of 2 : f32
  %sent = tf_executor.Send %x, %a#2 {tensor_name = "message"} : f32
  %b, %received = tf_executor.Recv %sent {tensor_name = “message”} : f32
  %m, %ctl = tf_executor.Merge %a#0, %a#1 : f32
  %after = tf_executor.ControlTrigger %ctl, %received
  %c, %last = tf_executor.island(%after)
      : (!_tf_executor.control) -> tensor<f32> {
    %sum = tf.Add 1, %b : f32
    tf_executor.yield %sum : f32
  }
  tf_executor.fetch %m, %c, %last : f32, f32, !_tf_executor.control
}
  return %fetches#0, %fetches#1 : f32, f32
}
