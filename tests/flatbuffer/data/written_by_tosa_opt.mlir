module {
  tosa.variable @st = dense<-128> : tensor<1x2xi8>
  func.func @main(%arg0: tensor<1x2xi8> {tosa.tensor_name = "in-0"}, %arg1: tensor<2xf32>, %c: tensor<i1>) -> (tensor<1x2xi8> {tosa.tensor_name = "out-0"}, tensor<2xf32>) {
    %0 = tosa.variable_read @st : tensor<1x2xi8>
    %1 = tosa.bitwise_and %arg0, %0 : (tensor<1x2xi8>, tensor<1x2xi8>) -> tensor<1x2xi8> loc("hello")
    %2 = tosa.clamp %1 {min_val = -1 : i8, max_val = 5 : i8} : (tensor<1x2xi8>) -> tensor<1x2xi8> loc("f.py":3:4)
    tosa.variable_write @st, %2 : tensor<1x2xi8>
    %3 = tosa.clamp %arg1 {min_val = -1.0 : f32, max_val = 5.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>
    %s = tosa.const_shape {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>
    %cst = "tosa.const"() <{values = dense<[1,2,-3]> : tensor<3xi4>}> : () -> tensor<3xi4>
    %5 = tosa.cond_if %c (%a = %3) : tensor<i1> (tensor<2xf32>) -> tensor<2xf32> {
     ^bb0(%a: tensor<2xf32>):
      %6 = tosa.exp %a : (tensor<2xf32>) -> tensor<2xf32>
      tosa.yield %6 : tensor<2xf32>
    } else {
     ^bb0(%a: tensor<2xf32>):
      tosa.yield %a : tensor<2xf32>
    }
    return %2, %5 : tensor<1x2xi8>, tensor<2xf32>
  }
}
