// Between two convolutions of a network with channels first, all is computed with channels last: no transpose is left there.
func.func @main(%x: tensor<1x4x4x3xf32>, %w: tensor<3x1x1x3xf32>, %b: tensor<3xf32>, %s: tensor<1x3x1x1xf32>) -> tensor<1x4x4x3xf32> {
  %zp = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %scale = "tosa.const"() {values = dense<[[[[1.0]], [[2.0]], [[3.0]]]]> : tensor<1x3x1x1xf32>} : () -> tensor<1x3x1x1xf32>
  %0 = tosa.conv2d %x, %w, %b, %zp, %zp {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x4x4x3xf32>, tensor<3x1x1x3xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32>
  %1 = tosa.transpose %0 {perms = array<i32: 0, 3, 1, 2>} : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32>
  %2 = tosa.mul %1, %scale, %shift : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>, tensor<1xi8>) -> tensor<1x3x4x4xf32>
  %3 = tosa.add %2, %s : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x3x4x4xf32>
  %4 = tosa.transpose %3 {perms = array<i32: 0, 2, 3, 1>} : (tensor<1x3x4x4xf32>) -> tensor<1x4x4x3xf32>
  %5 = tosa.conv2d %4, %w, %b, %zp, %zp {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x4x4x3xf32>, tensor<3x1x1x3xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32>
  return %5 : tensor<1x4x4x3xf32>
}
// -----
module {
  func.func @main(%x: tensor<1x4x4x3xf32>, %w: tensor<3x1x1x3xf32>, %b: tensor<3xf32>, %s: tensor<1x3x1x1xf32>) -> (tensor<1x4x4x3xf32>) {
    %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
    %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
    %scale = "tosa.const"() <{values = dense<[[[[1.0]], [[2.0]], [[3.0]]]]> : tensor<1x3x1x1xf32>}> : () -> tensor<1x3x1x1xf32>
    %0 = "tosa.conv2d"(%x, %w, %b, %zp, %zp) <{pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32, local_bound = false}> : (tensor<1x4x4x3xf32>, tensor<3x1x1x3xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32>
    %1 = "tosa.transpose"(%0) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32>
    %v2_0 = "tosa.transpose"(%scale) <{perms = array<i32: 0, 2, 3, 1>}> : (tensor<1x3x1x1xf32>) -> tensor<1x1x1x3xf32>
    %v2_1 = "tosa.mul"(%0, %v2_0, %shift) : (tensor<1x4x4x3xf32>, tensor<1x1x1x3xf32>, tensor<1xi8>) -> tensor<1x4x4x3xf32>
    %2 = "tosa.transpose"(%v2_1) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32>
    %v3_0 = "tosa.transpose"(%s) <{perms = array<i32: 0, 2, 3, 1>}> : (tensor<1x3x1x1xf32>) -> tensor<1x1x1x3xf32>
    %v3_1 = "tosa.add"(%v2_1, %v3_0) : (tensor<1x4x4x3xf32>, tensor<1x1x1x3xf32>) -> tensor<1x4x4x3xf32>
    %3 = "tosa.transpose"(%v3_1) <{perms = array<i32: 0, 3, 1, 2>}> : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32>
    %5 = "tosa.conv2d"(%v3_1, %w, %b, %zp, %zp) <{pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32, local_bound = false}> : (tensor<1x4x4x3xf32>, tensor<3x1x1x3xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32>
    return %5 : tensor<1x4x4x3xf32>
  }
}
