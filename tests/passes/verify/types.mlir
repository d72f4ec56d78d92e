// Operands must have the types that the operator's rules allow.
func.func @main(%x: tensor<4xf32>, %y: tensor<3xf32>) -> tensor<4xf32> {
  %0 = tosa.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
types.mlir:2:8: error[shape]: tosa.add: shapes 4 and 3 do not broadcast: 4 and 3
    2 |   %0 = tosa.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
      |        ^^^^^^^^
  help: extents must be equal, or one of them 1
