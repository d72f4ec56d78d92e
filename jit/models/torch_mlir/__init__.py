"""The part that runs in torch-mlir's process, for PyTorch and ONNX. `process` and the modules that it loads import nothing of
tosaic; `to_tosa` may import lowering."""
