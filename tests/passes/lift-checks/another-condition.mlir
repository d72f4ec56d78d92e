// A check of another condition is made only where the branch is taken: it stays.
func.func @main(%c: tensor<i1>, %d: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tosa.cond_if"(%c, %x) ({
  ^bb0(%a: tensor<2xf32>):
    "tosa.yield"(%a) : (tensor<2xf32>) -> ()
  }, {
  ^bb0(%b: tensor<2xf32>):
    "tosaic.assert"(%d) <{message = "c must hold"}> : (tensor<i1>) -> ()
    "tosa.yield"(%b) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// unchanged
