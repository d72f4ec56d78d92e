// What a region reads is read.
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %a = tosa.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %0 = "tosa.cond_if"(%p) ({
    "tosa.yield"(%a) : (tensor<2xf32>) -> ()
  }, {
    "tosa.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// unchanged
