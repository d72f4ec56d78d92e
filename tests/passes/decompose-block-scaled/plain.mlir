// A tensor of 8-bit floats without scales is one tensor already.
func.func @main(%x: tensor<2x32xf8E4M3FN>) -> tensor<2x32xf8E4M3FN> {
  %0 = tosa.reverse %x {axis = 0 : i32} : (tensor<2x32xf8E4M3FN>) -> tensor<2x32xf8E4M3FN>
  return %0 : tensor<2x32xf8E4M3FN>
}
// -----
// unchanged
