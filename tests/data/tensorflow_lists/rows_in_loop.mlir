module attributes {tf.versions = {bad_consumers = [], min_consumer = 0 : i32, producer = 2474 : i32}} {
  func.func @__inference_rows_in_loop_196(%arg0: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> tensor<*xf32> attributes {allow_soft_placement = false, tf.entry_function = {control_outputs = "", inputs = "x", outputs = "identity_RetVal"}} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.StridedSlice"(%arg0, %outputs_0, %outputs_2, %outputs_4) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Const"() <{value = dense<0.000000e+00> : tensor<3xf32>}> {device = ""} : () -> tensor<3xf32>
      %outputs_14:5, %control_15 = tf_executor.island wraps "tf.While"(%outputs_6, %outputs_8, %outputs, %outputs_12, %arg0) <{body = @while_body_1330, cond = @while_cond_1320, is_stateless = true, parallel_iterations = 10 : i64, shape_invariant}> {T = [i32, i32, i32, f32, f32], _lower_using_switch_merge = true, _num_original_outputs = 5 : i64, _read_only_resource_inputs = [], device = "", output_shapes = [#tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<3>, #tf_type.shape<4x3>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<3xf32>, tensor<4x3xf32>)
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Identity"(%outputs_14#3) {device = ""} : (tensor<3xf32>) -> tensor<*xf32>
      tf_executor.fetch %outputs_16 : tensor<*xf32>
    }
    return %0 : tensor<*xf32>
  }
  func.func private @while_body_1330(%arg0: tensor<i32> {tf._user_specified_name = "while/loop_counter"}, %arg1: tensor<i32> {tf._user_specified_name = "while/maximum_iterations"}, %arg2: tensor<i32>, %arg3: tensor<3xf32>, %arg4: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<4x3xf32>) attributes {tf._construction_context = "kEagerRuntime"} {
    %0:5 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_14, %control_15 = tf_executor.island wraps "tf.Const"() <{value = dense<[1, -1]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_18, %control_19 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_20, %control_21 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_22, %control_23 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_24, %control_25 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_26, %control_27 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_28, %control_29 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_30, %control_31 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_32, %control_33 = tf_executor.island wraps "tf.Identity"(%outputs_30) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_34, %control_35 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs_0) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_36, %control_37 = tf_executor.island wraps "tf.Pack"(%outputs_34) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_38, %control_39 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs_4) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_40, %control_41 = tf_executor.island wraps "tf.Pack"(%outputs_18, %outputs_38) <{axis = 0 : i64}> {device = ""} : (tensor<i32>, tensor<*xi32>) -> tensor<*xi32>
      %outputs_42, %control_43 = tf_executor.island wraps "tf.Pack"(%arg2) <{axis = 0 : i64}> {device = ""} : (tensor<i32>) -> tensor<*xi32>
      %outputs_44, %control_45 = tf_executor.island wraps "tf.Pack"(%outputs_16, %arg2) <{axis = 0 : i64}> {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_46, %control_47 = tf_executor.island wraps "tf.Sub"(%outputs_28, %arg2) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_48, %control_49 = tf_executor.island wraps "tf.AddV2"(%outputs_46, %outputs_2) {device = ""} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      %outputs_50, %control_51 = tf_executor.island wraps "tf.Pack"(%outputs_48, %outputs_12) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      %outputs_52, %control_53 = tf_executor.island wraps "tf.Pack"(%outputs_46, %outputs_10) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      %outputs_54, %control_55 = tf_executor.island wraps "tf.StridedSlice"(%arg4, %outputs_42, %outputs_36, %outputs_8) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_56, %control_57 = tf_executor.island wraps "tf.AddV2"(%arg3, %outputs_54) {device = ""} : (tensor<3xf32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_58, %control_59 = tf_executor.island wraps "tf.StridedSlice"(%arg4, %outputs_52, %outputs_50, %outputs_14) <{begin_mask = 2 : i64, ellipsis_mask = 0 : i64, end_mask = 2 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<2xi32>) -> tensor<*xf32>
      %outputs_60, %control_61 = tf_executor.island wraps "tf.AddV2"(%outputs_56, %outputs_58) {device = ""} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_62, %control_63 = tf_executor.island wraps "tf.StridedSlice"(%arg4, %outputs_44, %outputs_40, %outputs_20) <{begin_mask = 1 : i64, ellipsis_mask = 0 : i64, end_mask = 1 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 2 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<2xi32>) -> tensor<*xf32>
      %outputs_64, %control_65 = tf_executor.island wraps "tf.StridedSlice"(%outputs_62, %outputs_22, %outputs_24, %outputs_26) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<*xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_66, %control_67 = tf_executor.island wraps "tf.AddV2"(%outputs_60, %outputs_64) {device = ""} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_68, %control_69 = tf_executor.island wraps "tf.Identity"(%outputs_66) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_70, %control_71 = tf_executor.island wraps "tf.AddV2"(%arg0, %outputs_6) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_72, %control_73 = tf_executor.island wraps "tf.Identity"(%outputs_70) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_74, %control_75 = tf_executor.island wraps "tf.Identity"(%arg1) {device = ""} : (tensor<i32>) -> tensor<*xi32>
      tf_executor.fetch %outputs_72, %outputs_74, %outputs_32, %outputs_68, %arg4 : tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<4x3xf32>
    }
    return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<4x3xf32>
  }
  func.func private @while_cond_1320(%arg0: tensor<i32> {tf._user_specified_name = "while/loop_counter"}, %arg1: tensor<i32> {tf._user_specified_name = "while/maximum_iterations"}, %arg2: tensor<i32>, %arg3: tensor<3xf32>, %arg4: tensor<*xf32>) -> tensor<*xi1> attributes {tf._construction_context = "kEagerRuntime"} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Less"(%arg2, %outputs) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Identity"(%outputs_0) {device = ""} : (tensor<*xi1>) -> tensor<*xi1>
      tf_executor.fetch %outputs_2 : tensor<*xi1>
    }
    return %0 : tensor<*xi1>
  }
}
