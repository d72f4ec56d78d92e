// Rows before an index, a new row, and the rows behind it are the tensor with one row replaced: a selection where the
// row's number is the index.
func.func @main(%x: tensor<4x3xf32>, %i: tensor<i32>, %row: tensor<1x3xf32>) -> tensor<4x3xf32> {
  %zeros = "tosa.const"() {values = dense<0> : tensor<2xi32>} : () -> tensor<2xi32>
  %zero = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %width = "tosa.const"() {values = dense<3> : tensor<1xi32>} : () -> tensor<1xi32>
  %step = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
  %rest = "tosa.const"() {values = dense<-1> : tensor<2xi32>} : () -> tensor<2xi32>
  %unit = tosa.const_shape {values = dense<1> : tensor<1xindex>} : () -> !tosa.shape<1>
  %at = tosa.reshape %i, %unit : (tensor<i32>, !tosa.shape<1>) -> tensor<1xi32>
  %size = tosa.concat %at, %width {axis = 0 : i32} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %following = tosa.add %i, %step : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %next = tosa.reshape %following, %unit : (tensor<i32>, !tosa.shape<1>) -> tensor<1xi32>
  %begin = tosa.concat %next, %zero {axis = 0 : i32} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %before = "tfl.slice"(%x, %zeros, %size) : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  %after = "tfl.slice"(%x, %begin, %rest) : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  %0 = tosa.concat %before, %row, %after {axis = 0 : i32} : (tensor<?x3xf32>, tensor<1x3xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
// -----
module {
  func.func @main(%x: tensor<4x3xf32>, %i: tensor<i32>, %row: tensor<1x3xf32>) -> (tensor<4x3xf32>) {
    %zeros = "tosa.const"() <{values = dense<0> : tensor<2xi32>}> : () -> tensor<2xi32>
    %zero = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
    %width = "tosa.const"() <{values = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %step = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %rest = "tosa.const"() <{values = dense<-1> : tensor<2xi32>}> : () -> tensor<2xi32>
    %unit = "tosa.const_shape"() <{values = dense<1> : tensor<1xindex>}> : () -> !tosa.shape<1>
    %at = "tosa.reshape"(%i, %unit) : (tensor<i32>, !tosa.shape<1>) -> tensor<1xi32>
    %size = "tosa.concat"(%at, %width) <{axis = 0 : i32}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %following = "tosa.add"(%i, %step) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %next = "tosa.reshape"(%following, %unit) : (tensor<i32>, !tosa.shape<1>) -> tensor<1xi32>
    %begin = "tosa.concat"(%next, %zero) <{axis = 0 : i32}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %before = "tfl.slice"(%x, %zeros, %size) : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
    %after = "tfl.slice"(%x, %begin, %rest) : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
    %v0_0 = "tosa.const"() <{values = dense<[[0], [1], [2], [3]]> : tensor<4x1xi32>}> : () -> tensor<4x1xi32>
    %v0_1 = "tosa.const_shape"() <{values = dense<1> : tensor<2xindex>}> : () -> !tosa.shape<2>
    %v0_2 = "tosa.reshape"(%i, %v0_1) : (tensor<i32>, !tosa.shape<2>) -> tensor<1x1xi32>
    %v0_3 = "tosa.equal"(%v0_0, %v0_2) : (tensor<4x1xi32>, tensor<1x1xi32>) -> tensor<4x1xi1>
    %0 = "tosa.select"(%v0_3, %row, %x) : (tensor<4x1xi1>, tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
