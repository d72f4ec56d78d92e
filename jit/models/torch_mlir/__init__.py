"""What runs in torch-mlir's process, for PyTorch and ONNX. `process` and what it loads import nothing of tosaic; `to_tosa`
may import lowering."""
