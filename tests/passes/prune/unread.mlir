// An operation whose results nobody reads goes, and with it what only it has read; a write to a variable stays.
module {
  tosa.variable @v : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %b = tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32>
    %c = tosa.floor %x : (tensor<4xf32>) -> tensor<4xf32>
    tosa.variable_write @v, %c : tensor<4xf32>
    return %x : tensor<4xf32>
  }
}
// -----
module {
  "tosa.variable"() <{sym_name = "v", type = f32, var_shape = dense<4> : tensor<1xindex>}> : () -> ()
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>) {
    %c = "tosa.floor"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "tosa.variable_write"(%c) <{name = "v"}> : (tensor<4xf32>) -> ()
    return %x : tensor<4xf32>
  }
}
