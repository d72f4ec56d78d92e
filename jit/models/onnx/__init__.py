"""The door for ONNX files, and ONNX itself to check an import against. May import the other doors' torch_mlir and lowering."""
