// A block-scaled tensor is two tensors, its values and its scales; an operator that moves elements is applied to both.
func.func @main(%x: tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>>) -> tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>> {
  %0 = tosa.reverse %x {axis = 0 : i32} : (tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>>) -> tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>>
  return %0 : tensor<2x64x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN>>
}
// -----
module {
  func.func @main(%x: tensor<2x64xf4E2M1FN>, %x_scale: tensor<2x2xf8E8M0FNU>) -> (tensor<2x64xf4E2M1FN>, tensor<2x2xf8E8M0FNU>) {
    %0 = "tosa.reverse"(%x) <{axis = 0 : i32}> : (tensor<2x64xf4E2M1FN>) -> tensor<2x64xf4E2M1FN>
    %v0_scale = "tosa.reverse"(%x_scale) <{axis = 0 : i32}> : (tensor<2x2xf8E8M0FNU>) -> tensor<2x2xf8E8M0FNU>
    return %0, %v0_scale : tensor<2x64xf4E2M1FN>, tensor<2x2xf8E8M0FNU>
  }
}
