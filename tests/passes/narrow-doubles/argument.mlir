// An input of f64 is refused: TOSA has none, and narrowing it would change what its user gave.
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = tosa.add %x, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
// -----
error[unsupported]: input x of main is of f64, which TOSA does not have
  help: make the model one of f32
