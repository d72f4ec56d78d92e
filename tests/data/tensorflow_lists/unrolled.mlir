module attributes {tf.versions = {bad_consumers = [], min_consumer = 0 : i32, producer = 2474 : i32}} {
  func.func @__inference_unrolled_309(%arg0: tensor<4x3xf32> {tf._user_specified_name = "x"}) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) attributes {allow_soft_placement = false, tf.entry_function = {control_outputs = "", inputs = "x", outputs = "identity_RetVal,identity_1_RetVal,identity_2_RetVal,identity_3_RetVal"}} {
    %0:4 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<> : tensor<0xi64>}> {device = ""} : () -> tensor<0xi64>
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_2, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<4> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4, %control_5 = tf_executor.island wraps "tf.TensorListReserve"(%outputs_0, %outputs_2) {device = ""} : (tensor<i32>, tensor<i32>) -> tensor<!tf_type.variant<tensor<*xf32>>>
      %outputs_6, %control_7 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_14, %control_15 = tf_executor.island wraps "tf.Const"() <{value = dense<2> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_18, %control_19 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_20, %control_21 = tf_executor.island wraps "tf.Const"() <{value = dense<-1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_22, %control_23 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_24, %control_25 = tf_executor.island wraps "tf.Const"() <{value = dense<[2, 0]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_26, %control_27 = tf_executor.island wraps "tf.Const"() <{value = dense<1.000000e+00> : tensor<f32>}> {device = ""} : () -> tensor<f32>
      %outputs_28, %control_29 = tf_executor.island wraps "tf.Const"() <{value = dense<2.000000e+00> : tensor<f32>}> {device = ""} : () -> tensor<f32>
      %outputs_30, %control_31 = tf_executor.island wraps "tf.Const"() <{value = dense<3.000000e+00> : tensor<f32>}> {device = ""} : () -> tensor<f32>
      %outputs_32, %control_33 = tf_executor.island wraps "tf.Const"() <{value = dense<4.000000e+00> : tensor<f32>}> {device = ""} : () -> tensor<f32>
      %outputs_34, %control_35 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_36, %control_37 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_38, %control_39 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_40, %control_41 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_42, %control_43 = tf_executor.island wraps "tf.Const"() <{value = dense<2> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_44, %control_45 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_46, %control_47 = tf_executor.island wraps "tf.Const"() <{value = dense<2> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_48, %control_49 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_50, %control_51 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_52, %control_53 = tf_executor.island wraps "tf.Const"() <{value = dense<3> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_54, %control_55 = tf_executor.island wraps "tf.Const"() <{value = dense<4> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_56, %control_57 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_58, %control_59 = tf_executor.island wraps "tf.StridedSlice"(%arg0, %outputs_34, %outputs_36, %outputs_38) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_60, %control_61 = tf_executor.island wraps "tf.Mul"(%outputs_58, %outputs_26) {device = ""} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
      %outputs_62, %control_63 = tf_executor.island wraps "tf.TensorListSetItem"(%outputs_4, %outputs_12, %outputs_60) <{resize_if_index_out_of_bounds = false}> {device = ""} : (tensor<!tf_type.variant<tensor<*xf32>>>, tensor<i32>, tensor<*xf32>) -> tensor<*x!tf_type.variant>
      %outputs_64, %control_65 = tf_executor.island wraps "tf.StridedSlice"(%arg0, %outputs_40, %outputs_42, %outputs_44) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_66, %control_67 = tf_executor.island wraps "tf.Mul"(%outputs_64, %outputs_28) {device = ""} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
      %outputs_68, %control_69 = tf_executor.island wraps "tf.TensorListSetItem"(%outputs_62, %outputs_14, %outputs_66) <{resize_if_index_out_of_bounds = false}> {device = ""} : (tensor<*x!tf_type.variant>, tensor<i32>, tensor<*xf32>) -> tensor<*x!tf_type.variant>
      %outputs_70, %control_71 = tf_executor.island wraps "tf.StridedSlice"(%arg0, %outputs_46, %outputs_48, %outputs_50) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_72, %control_73 = tf_executor.island wraps "tf.Mul"(%outputs_70, %outputs_30) {device = ""} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
      %outputs_74, %control_75 = tf_executor.island wraps "tf.TensorListSetItem"(%outputs_68, %outputs_16, %outputs_72) <{resize_if_index_out_of_bounds = false}> {device = ""} : (tensor<*x!tf_type.variant>, tensor<i32>, tensor<*xf32>) -> tensor<*x!tf_type.variant>
      %outputs_76, %control_77 = tf_executor.island wraps "tf.StridedSlice"(%arg0, %outputs_52, %outputs_54, %outputs_56) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<4x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_78, %control_79 = tf_executor.island wraps "tf.Mul"(%outputs_76, %outputs_32) {device = ""} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
      %outputs_80, %control_81 = tf_executor.island wraps "tf.TensorListSetItem"(%outputs_74, %outputs_18, %outputs_78) <{resize_if_index_out_of_bounds = false}> {device = ""} : (tensor<*x!tf_type.variant>, tensor<i32>, tensor<*xf32>) -> tensor<*x!tf_type.variant>
      %outputs_82, %control_83 = tf_executor.island wraps "tf.TensorListGetItem"(%outputs_80, %outputs_8, %outputs_6) {device = ""} : (tensor<*x!tf_type.variant>, tensor<i32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_84, %control_85 = tf_executor.island wraps "tf.Identity"(%outputs_82) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_86, %control_87 = tf_executor.island wraps "tf.TensorListStack"(%outputs_80, %outputs_10) <{num_elements = 4 : i64}> {device = ""} : (tensor<*x!tf_type.variant>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_88, %control_89 = tf_executor.island wraps "tf.Identity"(%outputs_86) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_90:2, %control_91 = tf_executor.island wraps "tf.TensorListConcatV2"(%outputs_80, %outputs_20, %outputs) {device = ""} : (tensor<*x!tf_type.variant>, tensor<1xi32>, tensor<0xi64>) -> (tensor<*xf32>, tensor<*xi64>)
      %outputs_92, %control_93 = tf_executor.island wraps "tf.Identity"(%outputs_90#0) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_94, %control_95 = tf_executor.island wraps "tf.TensorListGather"(%outputs_80, %outputs_24, %outputs_22) {device = ""} : (tensor<*x!tf_type.variant>, tensor<2xi32>, tensor<1xi32>) -> tensor<*xf32>
      %outputs_96, %control_97 = tf_executor.island wraps "tf.Identity"(%outputs_94) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      tf_executor.fetch %outputs_88, %outputs_96, %outputs_84, %outputs_92 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
    }
    return %0#0, %0#1, %0#2, %0#3 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
  }
}
