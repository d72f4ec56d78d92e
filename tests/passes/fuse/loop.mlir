// The values that a loop carries are written in place, where no kernel behind the write reads the old one.
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
  %0:2 = "tosa.while_loop"(%n, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>):
    %c = tosa.greater %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "tosa.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>):
    %j = tosa.sub %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %b = tosa.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "tosa.yield"(%j, %b) : (tensor<i32>, tensor<4xf32>) -> ()
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
// -----
kernels main
  input n: int32[]
  input x: float32[4]
  output result0: float32[4]
  kernel 0: copy
    "0#0": int32[] at [] =
      n[]
  kernel 1: copy
    "0#1": float32[4] at [i0<4] =
      x[i0]
  kernel 2: greater
    condition: bool[] at [] =
      (1 < "0#0"[])
  kernel 3: sub
    "0#0": int32[] at [] =
      ("0#0"[] - 1)
  kernel 4: add
    "0#1": float32[4] at [i0<4] =
      ("0#1"[i0] + "0#1"[i0])
  kernel 5: copy
    result0: float32[4] at [i0<4] =
      "0#1"[i0]
  steps
    compute 0
    compute 1
    loop
      compute 2
    while condition
      compute 3
      compute 4
    compute 5
