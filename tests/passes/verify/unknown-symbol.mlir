// A variable that is written must be declared; one that is only read may be another graph's.
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %0 = tosa.variable_read @other : tensor<2xf32>
  tosa.variable_write @state, %x : tensor<4xf32>
  return %0 : tensor<2xf32>
}
// -----
unknown-symbol.mlir:3:3: error[variable]: tosa.variable_write: variable @state is not declared
    3 |   tosa.variable_write @state, %x : tensor<4xf32>
      |   ^^^^^^^^^^^^^^^^^^^
  help: declare it before: tosa.variable @state : tensor<4xf32>
