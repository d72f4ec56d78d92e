module attributes {tf.versions = {bad_consumers = [], min_consumer = 0 : i32, producer = 2474 : i32}} {
  func.func @__inference_slice_gradient_419(%arg0: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> tensor<*xf32> attributes {allow_soft_placement = false, tf.entry_function = {control_outputs = "", inputs = "x", outputs = "identity_RetVal"}} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<[4, 3]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<[1, 0]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.Const"() <{value = dense<[4, 3]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<[1, 2]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<3.000000e+00> : tensor<f32>}> {device = ""} : () -> tensor<f32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<1.000000e+00> : tensor<3x2xf32>}> {device = ""} : () -> tensor<3x2xf32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Mul"(%outputs_10, %outputs_8) {device = ""} : (tensor<3x2xf32>, tensor<f32>) -> tensor<*xf32>
      %outputs_14, %control_15 = tf_executor.island wraps "tf.StridedSliceGrad"(%outputs_4, %outputs_0, %outputs_2, %outputs_6, %outputs_12) <{begin_mask = 2 : i64, ellipsis_mask = 0 : i64, end_mask = 3 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}> {device = ""} : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Identity"(%outputs_14) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_18, %control_19 = tf_executor.island wraps "tf.Const"() <{value = dense<[1, 0]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_20, %control_21 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_22, %control_23 = tf_executor.island wraps "tf.Const"() <{value = dense<[1, 2]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_24, %control_25 = tf_executor.island wraps "tf.StridedSlice"(%arg0, %outputs_18, %outputs_20, %outputs_22) <{begin_mask = 2 : i64, ellipsis_mask = 0 : i64, end_mask = 3 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<*xf32>
      %outputs_26, %control_27 = tf_executor.island wraps "tf.Mul"(%outputs_24, %outputs_8) {device = ""} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
      tf_executor.fetch %outputs_16 : tensor<*xf32>
    }
    return %0 : tensor<*xf32>
  }
}
