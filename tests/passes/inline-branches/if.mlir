// A `tf.If` that names functions becomes a COND_IF that holds their bodies.
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.If"(%p, %x) {then_branch = @twice, else_branch = @size} : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @size(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.abs %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
module {
  func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = "tosa.cond_if"(%p, %x) ({
    ^bb0(%x_1: tensor<2xf32>):
      %0 = "tosa.add"(%x_1, %x_1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tosa.yield"(%0) : (tensor<2xf32>) -> ()
    }, {
    ^bb0(%x_2: tensor<2xf32>):
      %0 = "tosa.abs"(%x_2) : (tensor<2xf32>) -> tensor<2xf32>
      "tosa.yield"(%0) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func private @twice(%x: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = "tosa.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func private @size(%x: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = "tosa.abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
