// The rewritten graph is held to the same rules: the two branches of a condition yield the same types.
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<4xf32>) -> tensor<4xf32> {
    tosa.yield %a : tensor<4xf32>
  } else {
    %1 = tosa.cast %x : (tensor<4xf32>) -> tensor<4xi32>
    tosa.yield %1 : tensor<4xi32>
  }
  return %0 : tensor<4xf32>
}
// -----
region.mlir:5:5: error[type]: tosa.cond_if: number 0 of what the region for false yields is tensor<4xi32>, of what the region for true yields tensor<4xf32>
    5 |     %1 = tosa.cast %x : (tensor<4xf32>) -> tensor<4xi32>
      |     ^^
