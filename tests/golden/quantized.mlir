// A quantised convolution with state: what each stage makes of it is in the files beside this one.
module {
  tosa.variable @last = dense<0> : tensor<1x2x2x4xi8>

  func.func @main(%x: tensor<1x3x4x3xi8>) -> tensor<1x2x2x4xi8> {
    %weight = "tosa.const"() <{values = dense<[[[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[-1, -2, -3], [-4, -5, -6], [-7, -8, -9]]],
      [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[2, 0, 0], [0, 2, 0], [0, 0, 2]]],
      [[[9, 9, 9], [0, 0, 0], [9, 9, 9]], [[0, 0, 0], [9, 9, 9], [0, 0, 0]]],
      [[[1, 1, 1], [1, 1, 1], [1, 1, 1]], [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]]> : tensor<4x2x3x3xi8>}> : () -> tensor<4x2x3x3xi8>
    %bias = "tosa.const"() <{values = dense<[10, -20, 30, -40]> : tensor<4xi32>}> : () -> tensor<4xi32>
    %x_zp = "tosa.const"() <{values = dense<-3> : tensor<1xi8>}> : () -> tensor<1xi8>
    %w_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
    %0 = tosa.conv2d %x, %weight, %bias, %x_zp, %w_zp {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x3x4x3xi8>, tensor<4x2x3x3xi8>, tensor<4xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x4xi32>
    %multiplier = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
    %shift = "tosa.const"() <{values = dense<33> : tensor<1xi8>}> : () -> tensor<1xi8>
    %zero = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
    %out_zp = "tosa.const"() <{values = dense<5> : tensor<1xi8>}> : () -> tensor<1xi8>
    %1 = tosa.rescale %0, %multiplier, %shift, %zero, %out_zp {input_unsigned = false, output_unsigned = false, per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<1x2x2x4xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x2x2x4xi8>
    %2 = tosa.variable_read @last : tensor<1x2x2x4xi8>
    tosa.variable_write @last, %1 : tensor<1x2x2x4xi8>
    return %2 : tensor<1x2x2x4xi8>
  }
}
