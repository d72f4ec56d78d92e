module attributes {tf.versions = {bad_consumers = [], min_consumer = 0 : i32, producer = 2474 : i32}} {
  func.func @__inference_windows_253(%arg0: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> tensor<*xf32> attributes {allow_soft_placement = false, tf.entry_function = {control_outputs = "", inputs = "x", outputs = "identity_RetVal"}} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.TensorListReserve"(%outputs_0, %outputs_2) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<!tf_type.variant<tensor<*xf32>>>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<[2, 3]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_12:5, %control_13 = tf_executor.island wraps "tf.While"(%outputs_8, %outputs_10, %outputs, %outputs_4, %arg0) <{body = @while_body_2060, cond = @while_cond_2050, is_stateless = true, parallel_iterations = 10 : i64, shape_invariant}> {T = [i32, i32, i32, !tf_type.variant, f32], _lower_using_switch_merge = true, _num_original_outputs = 5 : i64, _read_only_resource_inputs = [], device = "", output_shapes = [#tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<4x3>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<!tf_type.variant<tensor<*xf32>>>, tensor<4x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<!tf_type.variant>, tensor<4x3xf32>)
      %outputs_14, %control_15 = tf_executor.island wraps "tf.TensorListStack"(%outputs_12#3, %outputs_6) <{num_elements = 3 : i64}> {device = ""} : (tensor<!tf_type.variant>, tensor<2xi32>) -> tensor<*xf32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Identity"(%outputs_14) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      tf_executor.fetch %outputs_16 : tensor<*xf32>
    }
    return %0 : tensor<*xf32>
  }
  func.func private @while_body_2060(%arg0: tensor<i32> {tf._user_specified_name = "while/loop_counter"}, %arg1: tensor<i32> {tf._user_specified_name = "while/maximum_iterations"}, %arg2: tensor<i32>, %arg3: tensor<!tf_type.variant>, %arg4: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*x!tf_type.variant>, tensor<4x3xf32>) attributes {tf._construction_context = "kEagerRuntime"} {
    %0:5 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Pack"(%outputs) <{axis = 0 : i64}> {device = ""} : (tensor<i32>) -> tensor<*xi32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.Const"() <{value = dense<[2, -1]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<2> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Pack"(%arg2, %outputs_2) <{axis = 0 : i64}> {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_14, %control_15 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs_6) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Identity"(%outputs_14) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_18, %control_19 = tf_executor.island wraps "tf.AddV2"(%arg2, %outputs_8) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_20, %control_21 = tf_executor.island wraps "tf.Pack"(%outputs_18) <{axis = 0 : i64}> {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_22, %control_23 = tf_executor.island wraps "tf.Pack"(%arg2) <{axis = 0 : i64}> {device = ""} : (tensor<i32>) -> tensor<*xi32>
      %outputs_24, %control_25 = tf_executor.island wraps "tf.Slice"(%arg4, %outputs_12, %outputs_4) {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<2xi32>) -> tensor<*xf32>
      %outputs_26, %control_27 = tf_executor.island wraps "tf.StridedSlice"(%arg4, %outputs_22, %outputs_20, %outputs_0) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<*xi32>) -> tensor<*xf32>
      %outputs_28, %control_29 = tf_executor.island wraps "tf.AddV2"(%outputs_26, %outputs_24) {device = ""} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_30, %control_31 = tf_executor.island wraps "tf.TensorListSetItem"(%arg3, %arg2, %outputs_28) <{resize_if_index_out_of_bounds = false}> {device = ""} : (tensor<!tf_type.variant>, tensor<i32>, tensor<*xf32>) -> tensor<*x!tf_type.variant>
      %outputs_32, %control_33 = tf_executor.island wraps "tf.Identity"(%outputs_30) {device = ""} : (tensor<*x!tf_type.variant>) -> tensor<*x!tf_type.variant>
      %outputs_34, %control_35 = tf_executor.island wraps "tf.AddV2"(%arg0, %outputs_10) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      %outputs_36, %control_37 = tf_executor.island wraps "tf.Identity"(%outputs_34) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_38, %control_39 = tf_executor.island wraps "tf.Identity"(%arg1) {device = ""} : (tensor<i32>) -> tensor<*xi32>
      tf_executor.fetch %outputs_36, %outputs_38, %outputs_16, %outputs_32, %arg4 : tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*x!tf_type.variant>, tensor<4x3xf32>
    }
    return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*x!tf_type.variant>, tensor<4x3xf32>
  }
  func.func private @while_cond_2050(%arg0: tensor<i32> {tf._user_specified_name = "while/loop_counter"}, %arg1: tensor<i32> {tf._user_specified_name = "while/maximum_iterations"}, %arg2: tensor<i32>, %arg3: tensor<!tf_type.variant>, %arg4: tensor<*xf32>) -> tensor<*xi1> attributes {tf._construction_context = "kEagerRuntime"} {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Less"(%arg2, %outputs) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Identity"(%outputs_0) {device = ""} : (tensor<*xi1>) -> tensor<*xi1>
      tf_executor.fetch %outputs_2 : tensor<*xi1>
    }
    return %0 : tensor<*xi1>
  }
}
