// A branch must name a function of the module.
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.If"(%p, %x) {then_branch = @twice, else_branch = @twice} : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
error[argument]: the module has no function twice
  help: it has main
