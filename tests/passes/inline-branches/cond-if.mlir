// A COND_IF holds its regions already.
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.cond_if %p (%a = %x) : tensor<i1> (tensor<2xf32>) -> tensor<2xf32> {
    %1 = tosa.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    tosa.yield %1 : tensor<2xf32>
  } else {
    tosa.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
// -----
// unchanged
