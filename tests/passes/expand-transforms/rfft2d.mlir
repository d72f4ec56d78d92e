// RFFT2D of real numbers keeps half of the columns; where the imaginary part of a real transform must be zero, it is.
func.func @main(%r: tensor<1x4x8xf32>) -> (tensor<1x4x5xf32>, tensor<1x4x5xf32>) {
  %0:2 = tosa.rfft2d %r {local_bound = false} : (tensor<1x4x8xf32>) -> (tensor<1x4x5xf32>, tensor<1x4x5xf32>)
  return %0#0, %0#1 : tensor<1x4x5xf32>, tensor<1x4x5xf32>
}
// -----
module {
  func.func @main(%r: tensor<1x4x8xf32>) -> (tensor<1x4x5xf32>, tensor<1x4x5xf32>) {
    %v0_0_0 = "tosaic.fourier2d"(%r) <{columns = 8 : i32, inverse = false}> : (tensor<1x4x8xf32>) -> tensor<1x2x4x8xf32>
    %v0_0_1 = "tosa.const"() <{values = dense<[[[true], [false], [true], [false]]]> : tensor<1x4x1xi1>}> : () -> tensor<1x4x1xi1>
    %v0_0_2 = "tosa.const"() <{values = dense<[[[true, false, false, false, true]]]> : tensor<1x1x5xi1>}> : () -> tensor<1x1x5xi1>
    %v0_0_3 = "tosa.logical_and"(%v0_0_1, %v0_0_2) : (tensor<1x4x1xi1>, tensor<1x1x5xi1>) -> tensor<1x4x5xi1>
    %v0_0_4 = "tosa.const_shape"() <{values = dense<0> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_5 = "tosa.const_shape"() <{values = dense<[1, 1, 4, 5]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_6 = "tosa.slice"(%v0_0_0, %v0_0_4, %v0_0_5) : (tensor<1x2x4x8xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x1x4x5xf32>
    %v0_0_7 = "tosa.const_shape"() <{values = dense<[1, 4, 5]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %v0_0_8 = "tosa.reshape"(%v0_0_6, %v0_0_7) : (tensor<1x1x4x5xf32>, !tosa.shape<3>) -> tensor<1x4x5xf32>
    %v0_0_9 = "tosa.const"() <{values = dense<0.0> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
    %v0_0_10 = "tosa.const_shape"() <{values = dense<[0, 1, 0, 0]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_11 = "tosa.const_shape"() <{values = dense<[1, 1, 4, 5]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_12 = "tosa.slice"(%v0_0_0, %v0_0_10, %v0_0_11) : (tensor<1x2x4x8xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x1x4x5xf32>
    %v0_0_13 = "tosa.const_shape"() <{values = dense<[1, 4, 5]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %v0_0_14 = "tosa.reshape"(%v0_0_12, %v0_0_13) : (tensor<1x1x4x5xf32>, !tosa.shape<3>) -> tensor<1x4x5xf32>
    %v0_0_15 = "tosa.select"(%v0_0_3, %v0_0_9, %v0_0_14) : (tensor<1x4x5xi1>, tensor<1x1x1xf32>, tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
    return %v0_0_8, %v0_0_15 : tensor<1x4x5xf32>, tensor<1x4x5xf32>
  }
}
