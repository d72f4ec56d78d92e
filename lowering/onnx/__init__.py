"""Reads ONNX files: protobuf becomes a module of `onnx` operations. May import the dialects and text's attributes."""
