module attributes {tf.versions = {bad_consumers = [], min_consumer = 0 : i32, producer = 2474 : i32}} {
  func.func @__inference_updates_in_loop_399(%arg0: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> tensor<*xf32> attributes {allow_soft_placement = false, tf.entry_function = {control_outputs = "", inputs = "x", outputs = "identity_RetVal"}} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4:5, %control_5 = tf_executor.island wraps "tf.While"(%outputs_0, %outputs_2, %outputs, %arg0, %arg0) <{body = @while_body_3480, cond = @while_cond_3470, is_stateless = true, parallel_iterations = 10 : i64, shape_invariant}> {T = [i32, i32, i32, f32, f32], _lower_using_switch_merge = true, _num_original_outputs = 5 : i64, _read_only_resource_inputs = [], device = "", output_shapes = [#tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<4x3>, #tf_type.shape<4x3>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>)
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Identity"(%outputs_4#3) {device = ""} : (tensor<4x3xf32>) -> tensor<*xf32>
      tf_executor.fetch %outputs_6 : tensor<*xf32>
    }
    return %0 : tensor<*xf32>
  }
  func.func private @while_body_3480(%arg0: tensor<i32> {tf._user_specified_name = "while/loop_counter"}, %arg1: tensor<i32> {tf._user_specified_name = "while/maximum_iterations"}, %arg2: tensor<i32>, %arg3: tensor<4x3xf32>, %arg4: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<4x3xf32>) attributes {tf._construction_context = "kEagerRuntime"} {
    %0:5 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Pack"(%arg2) <{axis = 0 : i64}> {device = ""} : (tensor<i32>) -> tensor<*xi32>
      %outputs_14, %control_15 = tf_executor.island wraps "tf.Pack"(%outputs_12) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_18, %control_19 = tf_executor.island wraps "tf.Identity"(%outputs_16) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_20, %control_21 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs_2) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_22, %control_23 = tf_executor.island wraps "tf.Pack"(%outputs_20) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_24, %control_25 = tf_executor.island wraps "tf.Pack"(%arg2) <{axis = 0 : i64}> {device = ""} : (tensor<i32>) -> tensor<*xi32>
      %outputs_26, %control_27 = tf_executor.island wraps "tf.Sub"(%arg2, %outputs_10) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_28, %control_29 = tf_executor.island wraps "tf.AddV2"(%outputs_26, %outputs_0) {device = ""} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      %outputs_30, %control_31 = tf_executor.island wraps "tf.Pack"(%outputs_28) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_32, %control_33 = tf_executor.island wraps "tf.Pack"(%outputs_26) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_34, %control_35 = tf_executor.island wraps "tf.StridedSlice"(%arg3, %outputs_32, %outputs_30, %outputs_6) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_36, %control_37 = tf_executor.island wraps "tf.StridedSlice"(%arg4, %outputs_24, %outputs_22, %outputs_8) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_38, %control_39 = tf_executor.island wraps "tf.AddV2"(%outputs_34, %outputs_36) {device = ""} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_40, %control_41 = tf_executor.island wraps "tf.Pack"(%outputs_38) <{axis = 0 : i64}> {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_42, %control_43 = tf_executor.island wraps "tf.TensorScatterUpdate"(%arg3, %outputs_14, %outputs_40) <{bad_indices_policy = ""}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_44, %control_45 = tf_executor.island wraps "tf.Identity"(%outputs_42) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_46, %control_47 = tf_executor.island wraps "tf.AddV2"(%arg0, %outputs_4) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_48, %control_49 = tf_executor.island wraps "tf.Identity"(%outputs_46) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_50, %control_51 = tf_executor.island wraps "tf.Identity"(%arg1) {device = ""} : (tensor<i32>) -> tensor<*xi32>
      tf_executor.fetch %outputs_48, %outputs_50, %outputs_18, %outputs_44, %arg4 : tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<4x3xf32>
    }
    return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<4x3xf32>
  }
  func.func private @while_cond_3470(%arg0: tensor<i32> {tf._user_specified_name = "while/loop_counter"}, %arg1: tensor<i32> {tf._user_specified_name = "while/maximum_iterations"}, %arg2: tensor<i32>, %arg3: tensor<4x3xf32>, %arg4: tensor<*xf32>) -> tensor<*xi1> attributes {tf._construction_context = "kEagerRuntime"} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<4> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Less"(%arg2, %outputs) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Identity"(%outputs_0) {device = ""} : (tensor<*xi1>) -> tensor<*xi1>
      tf_executor.fetch %outputs_2 : tensor<*xi1>
    }
    return %0 : tensor<*xi1>
  }
}
