// A bound of CLAMP that is the largest finite number becomes infinity, as a ReLU means it.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.clamp %x {min_val = 0.0 : f32, max_val = 3.40282347E+38 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
module {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = "tosa.clamp"(%x) <{min_val = 0.0 : f32, max_val = 0x7F800000 : f32, nan_mode = #tosa.nan_mode<PROPAGATE>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
