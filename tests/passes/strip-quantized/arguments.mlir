// Quantized tensors become tensors of the integers that they are stored as, in arguments, values and results.
func.func @main(%x: tensor<2x3x!quant.uniform<i8:f32, 5.000000e-01:-3>>) -> tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01:-3>> {
  %0 = tosa.transpose %x {perms = array<i32: 1, 0>} : (tensor<2x3x!quant.uniform<i8:f32, 5.000000e-01:-3>>) -> tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01:-3>>
  return %0 : tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01:-3>>
}
// -----
module {
  func.func @main(%x: tensor<2x3xi8>) -> (tensor<3x2xi8>) {
    %0 = "tosa.transpose"(%x) <{perms = array<i32: 1, 0>}> : (tensor<2x3xi8>) -> tensor<3x2xi8>
    return %0 : tensor<3x2xi8>
  }
}
