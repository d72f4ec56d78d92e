// A conversion to f32 is a CAST_FROM_BLOCK_SCALED of values and scales, on rows of one block.
func.func @main(%x: tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>>) -> tensor<2x64xf32> {
  %0 = tosa.cast %x : (tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
// -----
module {
  func.func @main(%x: tensor<2x64xf4E2M1FN>, %x_scale: tensor<2x2xf8E8M0FNU>) -> (tensor<2x64xf32>) {
    %constant = "tosa.const_shape"() <{values = dense<[4, 32]> : tensor<2xindex>}> : () -> !tosa.shape<2>
    %x_rows = "tosa.reshape"(%x, %constant) : (tensor<2x64xf4E2M1FN>, !tosa.shape<2>) -> tensor<4x32xf4E2M1FN>
    %constant_1 = "tosa.const_shape"() <{values = dense<[4, 1]> : tensor<2xindex>}> : () -> !tosa.shape<2>
    %x_scale_rows = "tosa.reshape"(%x_scale, %constant_1) : (tensor<2x2xf8E8M0FNU>, !tosa.shape<2>) -> tensor<4x1xf8E8M0FNU>
    %x_rows_1 = "tosa.cast_from_block_scaled"(%x_rows, %x_scale_rows) <{block_size = #tosa.block_size<BLOCK_SIZE_32>}> : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
    %constant_2 = "tosa.const_shape"() <{values = dense<[2, 64]> : tensor<2xindex>}> : () -> !tosa.shape<2>
    %x_rows_rows = "tosa.reshape"(%x_rows_1, %constant_2) : (tensor<4x32xf32>, !tosa.shape<2>) -> tensor<2x64xf32>
    %0 = "tosa.identity"(%x_rows_rows) : (tensor<2x64xf32>) -> tensor<2x64xf32>
    return %0 : tensor<2x64xf32>
  }
}
