module attributes {tf.versions = {bad_consumers = [], min_consumer = 0 : i32, producer = 2474 : i32}} {
  func.func @main(%arg0: tensor<4x3xf32>) -> tensor<*xf32> attributes {tf.entry_function = {control_outputs = "", inputs = "x", outputs = "y"}} {
    %0 = tf_executor.graph {
      %output, %token, %control = tf_executor.NextIteration.Source : tensor<f32> {T = f32, device = ""}
      %output_0, %token_1, %control_2 = tf_executor.NextIteration.Source : tensor<*xi32> {T = i32, device = ""}
      %outputs, %control_3 = tf_executor.island wraps "tf.Const"() <{value = dense<4> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_4:2, %control_5 = tf_executor.island wraps "tf.TensorArrayV3"(%outputs) <{clear_after_read = true, dtype = f32, dynamic_size = false, element_shape = #tf_type.shape<*>, identical_element_shapes = true, tensor_array_name = ""}> {device = ""} : (tensor<i32>) -> (tensor<2x!tf_type.resource<tensor<*xf32>>>, tensor<f32>)
      %output_6, %control_7 = tf_executor.Enter %outputs_4#0 frame "while/while_context" constant  : tensor<2x!tf_type.resource<tensor<*xf32>>> {T = !tf_type.resource, device = ""}
      %outputs_8, %control_9 = tf_executor.island wraps "tf.Const"() <{value = dense<4> : tensor<i32>}> {_class = ["loc:@TensorArray_1"], device = ""} : () -> tensor<i32>
      %outputs_10, %control_11 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {_class = ["loc:@TensorArray_1"], device = ""} : () -> tensor<i32>
      %outputs_12, %control_13 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {_class = ["loc:@TensorArray_1"], device = ""} : () -> tensor<i32>
      %outputs_14, %control_15 = tf_executor.island wraps "tf.Range"(%outputs_12, %outputs_8, %outputs_10) {_class = ["loc:@TensorArray_1"], device = ""} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
      %outputs_16, %control_17 = tf_executor.island wraps "tf.Const"() <{value = dense<[4, 3]> : tensor<2xi32>}> {device = ""} : () -> tensor<2xi32>
      %outputs_18, %control_19 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_20, %control_21 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_22, %control_23 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_24, %control_25 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_26, %control_27 = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<1xi32>}> {device = ""} : () -> tensor<1xi32>
      %outputs_28, %control_29 = tf_executor.island wraps "tf.StridedSlice"(%outputs_16, %outputs_22, %outputs_24, %outputs_26) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}> {device = ""} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
      %outputs_30, %control_31 = tf_executor.island wraps "tf.Range"(%outputs_20, %outputs_28, %outputs_18) {device = ""} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
      %outputs_32, %control_33 = tf_executor.island wraps "tf.Const"() <{value = dense<4> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_34:2, %control_35 = tf_executor.island wraps "tf.TensorArrayV3"(%outputs_32) <{clear_after_read = true, dtype = f32, dynamic_size = false, element_shape = #tf_type.shape<*>, identical_element_shapes = true, tensor_array_name = ""}> {device = ""} : (tensor<i32>) -> (tensor<2x!tf_type.resource<tensor<*xf32>>>, tensor<f32>)
      %output_36, %control_37 = tf_executor.Enter %outputs_34#1 frame "while/while_context" : (tensor<f32>) -> (tensor<*xf32>, !tf_executor.control) {T = f32, device = ""}
      %output_38, %value_index, %control_39 = tf_executor.Merge %output_36, %output : (tensor<*xf32>, tensor<f32>) -> (tensor<*xf32>, tensor<i32>, !tf_executor.control) {N = 2 : i64, T = f32, device = ""}
      %output_40, %control_41 = tf_executor.Enter %outputs_34#0 frame "while/while_context" constant  : tensor<2x!tf_type.resource<tensor<*xf32>>> {T = !tf_type.resource, _class = ["loc:@while/mul"], device = ""}
      %outputs_42, %control_43 = tf_executor.island wraps "tf.Const"() <{value = dense<0> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %output_44, %control_45 = tf_executor.Enter %outputs_42 frame "while/while_context" : (tensor<i32>) -> (tensor<*xi32>, !tf_executor.control) {T = i32, device = ""}
      %output_46, %value_index_47, %control_48 = tf_executor.Merge %output_44, %output_0 : tensor<*xi32> {N = 2 : i64, T = i32, device = ""}
      %outputs_49, %control_50 = tf_executor.island(%control_48) wraps "tf.Const"() <{value = dense<4> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_51, %control_52 = tf_executor.island wraps "tf.Less"(%output_46, %outputs_49) {device = ""} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
      %output_53, %control_54 = tf_executor.LoopCond %outputs_51 : (tensor<*xi1>) -> (tensor<i1>, !tf_executor.control) {device = ""}
      %falseOutput, %trueOutput, %control_55 = tf_executor.Switch %output_38, %output_53 : tensor<*xf32> {T = f32, _class = ["loc:@while/Merge_1"], device = ""}
      %output_56, %control_57 = tf_executor.Exit %falseOutput : tensor<*xf32> {T = f32, device = ""}
      %outputs_58, %control_59 = tf_executor.island wraps "tf.TensorArrayGatherV3"(%outputs_34#0, %outputs_14, %output_56) <{element_shape = #tf_type.shape<3>}> {_class = ["loc:@TensorArray_1"], device = ""} : (tensor<2x!tf_type.resource<tensor<*xf32>>>, tensor<4xi32>, tensor<*xf32>) -> tensor<*xf32>
      %outputs_60, %control_61 = tf_executor.island wraps "tf.Identity"(%outputs_58) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %outputs_62, %control_63 = tf_executor.island wraps "tf.Identity"(%trueOutput) {device = ""} : (tensor<*xf32>) -> tensor<*xf32>
      %falseOutput_64, %trueOutput_65, %control_66 = tf_executor.Switch %output_46, %output_53 : tensor<*xi32> {T = i32, _class = ["loc:@while/Merge"], device = ""}
      %output_67, %control_68 = tf_executor.Exit %falseOutput_64 : tensor<*xi32> {T = i32, device = ""}
      %outputs_69, %control_70 = tf_executor.island wraps "tf.Identity"(%trueOutput_65) {device = ""} : (tensor<*xi32>) -> tensor<*xi32>
      %outputs_71, %control_72 = tf_executor.island(%control_70) wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> {device = ""} : () -> tensor<i32>
      %outputs_73, %control_74 = tf_executor.island wraps "tf.AddV2"(%outputs_69, %outputs_71) {device = ""} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      tf_executor.NextIteration.Sink[%token_1] %outputs_73 : tensor<*xi32> {T = i32, device = ""}
      %outputs_75, %control_76 = tf_executor.island(%control_70) wraps "tf.Const"() <{value = dense<2.000000e+00> : tensor<f32>}> {device = ""} : () -> tensor<f32>
      %outputs_77, %control_78 = tf_executor.island wraps "tf.TensorArrayScatterV3"(%outputs_4#0, %outputs_30, %arg0, %outputs_4#1) {_class = ["loc:@x"], device = ""} : (tensor<2x!tf_type.resource<tensor<*xf32>>>, tensor<4xi32>, tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
      %output_79, %control_80 = tf_executor.Enter %outputs_77 frame "while/while_context" constant  : tensor<f32> {T = f32, device = ""}
      %outputs_81, %control_82 = tf_executor.island wraps "tf.TensorArrayReadV3"(%output_6, %outputs_69, %output_79) {device = ""} : (tensor<2x!tf_type.resource<tensor<*xf32>>>, tensor<*xi32>, tensor<f32>) -> tensor<*xf32>
      %outputs_83, %control_84 = tf_executor.island wraps "tf.Mul"(%outputs_81, %outputs_75) {device = ""} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
      %outputs_85, %control_86 = tf_executor.island wraps "tf.TensorArrayWriteV3"(%output_40, %outputs_69, %outputs_83, %outputs_62) {_class = ["loc:@while/mul"], device = ""} : (tensor<2x!tf_type.resource<tensor<*xf32>>>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> tensor<f32>
      tf_executor.NextIteration.Sink[%token] %outputs_85 : tensor<f32> {T = f32, device = ""}
      tf_executor.fetch %outputs_60 : tensor<*xf32>
    }
    return %0 : tensor<*xf32>
  }
}
