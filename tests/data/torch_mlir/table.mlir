module {
  func.func @main(%arg0: tensor<2x3xi64>) -> tensor<2x3xf32> {
    %0 = "tosa.const"() <{values = dense_resource<torch_tensor_2_3_torch.int32> : tensor<2x3xi32>}> : () -> tensor<2x3xi32>
    %1 = "tosa.const"() <{values = dense_resource<torch_tensor_1_3_torch.uint8> : tensor<1x3xi8>}> : () -> tensor<1x3xi8>
    %2 = tosa.const_shape  {values = dense<[1, 6]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %3 = tosa.const_shape  {values = dense<[2, 3, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
    %4 = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
    %5 = tosa.const_shape  {values = dense<[2, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %6 = "tosa.const"() <{values = dense_resource<torch_tensor_10_4_torch.float32> : tensor<1x10x4xf32>}> : () -> tensor<1x10x4xf32>
    %7 = "tosa.const"() <{values = dense<2.500000e-01> : tensor<1x1x1xf64>}> : () -> tensor<1x1x1xf64>
    %8 = "tosa.const"() <{values = dense<2.500000e-01> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
    %9 = "tosa.const"() <{values = dense<9.99999974E-6> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
    %10 = "tosa.const"() <{values = dense_resource<torch_tensor_4_torch.float32> : tensor<1x1x4xf32>}> : () -> tensor<1x1x4xf32>
    %11 = "tosa.const"() <{values = dense_resource<torch_tensor_4_torch.float32_1> : tensor<1x1x4xf32>}> : () -> tensor<1x1x4xf32>
    %12 = tosa.reshape %arg0, %2 : (tensor<2x3xi64>, !tosa.shape<2>) -> tensor<1x6xi64>
    %13 = tosa.cast %12 : (tensor<1x6xi64>) -> tensor<1x6xi32>
    %14 = tosa.gather %6, %13 : (tensor<1x10x4xf32>, tensor<1x6xi32>) -> tensor<1x6x4xf32>
    %15 = tosa.reshape %14, %3 : (tensor<1x6x4xf32>, !tosa.shape<3>) -> tensor<2x3x4xf32>
    %16 = tosa.cast %15 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf64>
    %17 = tosa.reduce_sum %16 {axis = 2 : i32} : (tensor<2x3x4xf64>) -> tensor<2x3x1xf64>
    %18 = tosa.mul %17, %7, %4 : (tensor<2x3x1xf64>, tensor<1x1x1xf64>, tensor<1xi8>) -> tensor<2x3x1xf64>
    %19 = tosa.sub %16, %18 : (tensor<2x3x4xf64>, tensor<2x3x1xf64>) -> tensor<2x3x4xf64>
    %20 = tosa.mul %19, %19, %4 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<1xi8>) -> tensor<2x3x4xf64>
    %21 = tosa.reduce_sum %20 {axis = 2 : i32} : (tensor<2x3x4xf64>) -> tensor<2x3x1xf64>
    %22 = tosa.mul %21, %7, %4 : (tensor<2x3x1xf64>, tensor<1x1x1xf64>, tensor<1xi8>) -> tensor<2x3x1xf64>
    %23 = tosa.cast %22 : (tensor<2x3x1xf64>) -> tensor<2x3x1xf32>
    %24 = tosa.reduce_sum %15 {axis = 2 : i32} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
    %25 = tosa.mul %24, %8, %4 : (tensor<2x3x1xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<2x3x1xf32>
    %26 = tosa.add %23, %9 : (tensor<2x3x1xf32>, tensor<1x1x1xf32>) -> tensor<2x3x1xf32>
    %27 = tosa.rsqrt %26 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
    %28 = tosa.sub %15, %25 : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
    %29 = tosa.mul %28, %27, %4 : (tensor<2x3x4xf32>, tensor<2x3x1xf32>, tensor<1xi8>) -> tensor<2x3x4xf32>
    %30 = tosa.mul %29, %10, %4 : (tensor<2x3x4xf32>, tensor<1x1x4xf32>, tensor<1xi8>) -> tensor<2x3x4xf32>
    %31 = tosa.add %30, %11 : (tensor<2x3x4xf32>, tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
    %32 = tosa.reduce_sum %31 {axis = 2 : i32} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
    %33 = tosa.reshape %32, %5 : (tensor<2x3x1xf32>, !tosa.shape<2>) -> tensor<2x3xf32>
    %34 = tosa.cast %1 : (tensor<1x3xi8>) -> tensor<1x3xi1>
    %35 = tosa.cast %34 : (tensor<1x3xi1>) -> tensor<1x3xi8>
    %36 = tosa.cast %35 : (tensor<1x3xi8>) -> tensor<1x3xf32>
    %37 = tosa.mul %33, %36, %4 : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<1xi8>) -> tensor<2x3xf32>
    %38 = tosa.cast %0 : (tensor<2x3xi32>) -> tensor<2x3xf32>
    %39 = tosa.add %37, %38 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %39 : tensor<2x3xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_2_3_torch.int32: "0x04000000FDFFFFFFFEFFFFFFFFFFFFFF000000000100000002000000",
      torch_tensor_1_3_torch.uint8: "0x01000000010001",
      torch_tensor_10_4_torch.float32: "0x04000000303B14BEEC3A233F460590BE5939AABF695F27BF3223DC3F2C0176BF5D3323BF051063BFF0B9563F1192933FAA6BE1BF73B38DBF7ED2DBBF7F6CC43F4C1F52BB225DB83F357FE2BD1DAD133FF93B2DBEA326983F9A4921BEAB863ABD5B02263F0F6102406E9E243FAF893BBF92B5F9BE9A926FBED012353F087E143FE45E893E126D54BF6248A23F65108C3EFC591DBF5777C0BC47F9953FBA20CC3E157C4BBE",
      torch_tensor_4_torch.float32: "0x040000000000803F0000803F0000803F0000803F",
      torch_tensor_4_torch.float32_1: "0x0400000000000000000000000000000000000000"
    }
  }
#-}
