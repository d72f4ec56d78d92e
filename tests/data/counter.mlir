// One variable, three entry points.
module {
  tosa.variable @n = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>

  func.func @get() -> tensor<3xf32> {
    %0 = tosa.variable_read @n : tensor<3xf32>
    return %0 : tensor<3xf32>
  }

  func.func @add(%d: tensor<3xf32>) -> tensor<f32> {
    %0 = tosa.variable_read @n : tensor<3xf32>
    %1 = tosa.add %0, %d : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    tosa.variable_write @n, %1 : tensor<3xf32>
    %2 = tosa.variable_read @n : tensor<3xf32>
    %3 = tosa.reduce_sum %2 {axis = 0 : i32} : (tensor<3xf32>) -> tensor<1xf32>
    %4 = tosa.const_shape {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>
    %5 = tosa.reshape %3, %4 : (tensor<1xf32>, !tosa.shape<0>) -> tensor<f32>
    return %5 : tensor<f32>
  }

  func.func @reset() -> tensor<3xf32> {
    %0 = "tosa.const"() <{values = dense<0.0> : tensor<3xf32>}> : () -> tensor<3xf32>
    tosa.variable_write @n, %0 : tensor<3xf32>
    %1 = tosa.variable_read @n : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
