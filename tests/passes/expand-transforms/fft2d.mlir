// FFT2D becomes one operator that gives both parts of the result in one tensor, and a slice for each part.
func.func @main(%r: tensor<1x4x8xf32>, %i: tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>) {
  %0:2 = tosa.fft2d %r, %i {inverse = false, local_bound = false} : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>)
  return %0#0, %0#1 : tensor<1x4x8xf32>, tensor<1x4x8xf32>
}
// -----
module {
  func.func @main(%r: tensor<1x4x8xf32>, %i: tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>) {
    %v0_0_0 = "tosaic.fourier2d"(%r, %i) <{columns = 8 : i32, inverse = false}> : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x2x4x8xf32>
    %v0_0_1 = "tosa.const_shape"() <{values = dense<0> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_2 = "tosa.const_shape"() <{values = dense<[1, 1, 4, 8]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_3 = "tosa.slice"(%v0_0_0, %v0_0_1, %v0_0_2) : (tensor<1x2x4x8xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x1x4x8xf32>
    %v0_0_4 = "tosa.const_shape"() <{values = dense<[1, 4, 8]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %v0_0_5 = "tosa.reshape"(%v0_0_3, %v0_0_4) : (tensor<1x1x4x8xf32>, !tosa.shape<3>) -> tensor<1x4x8xf32>
    %v0_0_6 = "tosa.const_shape"() <{values = dense<[0, 1, 0, 0]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_7 = "tosa.const_shape"() <{values = dense<[1, 1, 4, 8]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %v0_0_8 = "tosa.slice"(%v0_0_0, %v0_0_6, %v0_0_7) : (tensor<1x2x4x8xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x1x4x8xf32>
    %v0_0_9 = "tosa.const_shape"() <{values = dense<[1, 4, 8]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %v0_0_10 = "tosa.reshape"(%v0_0_8, %v0_0_9) : (tensor<1x1x4x8xf32>, !tosa.shape<3>) -> tensor<1x4x8xf32>
    return %v0_0_5, %v0_0_10 : tensor<1x4x8xf32>, tensor<1x4x8xf32>
  }
}
