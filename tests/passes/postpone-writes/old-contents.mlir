// A write moves behind the last operator that looks at the old contents: they need no copy then.
module {
  tosa.variable @v : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %old = tosa.variable_read @v : tensor<4xf32>
    tosa.variable_write @v, %x : tensor<4xf32>
    %0 = tosa.sub %x, %old : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
module {
  "tosa.variable"() <{sym_name = "v", type = f32, var_shape = dense<4> : tensor<1xindex>}> : () -> ()
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>) {
    %old = "tosa.variable_read"() <{name = "v"}> : () -> tensor<4xf32>
    %0 = "tosa.sub"(%x, %old) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "tosa.variable_write"(%x) <{name = "v"}> : (tensor<4xf32>) -> ()
    return %0 : tensor<4xf32>
  }
}
