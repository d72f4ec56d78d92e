// A kernel program of the op-by-op runtime: `tosaic run samples/models/op_by_op.mlir`.
func.func @add_two() -> !tfrt.chain {
  %ch0 = tfrt.new.chain
  %cpu = corert.get_op_handler %ch0 "cpu"
  %a = corert.const_dense_tensor dense<[1, 2, 3]> : tensor<3xi32>
  %b = corert.const_dense_tensor dense<[10, 20, 30]> : tensor<3xi32>
  %sum = corert.executeop(%cpu) "tosa.add"(%a, %b) : 1
  %ch1 = "corert.print_tensorhandle"(%sum, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %ch1 : !tfrt.chain
}
