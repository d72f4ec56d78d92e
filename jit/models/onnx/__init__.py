"""The door for ONNX files, and ONNX itself to check a model against. May import lowering and the models beside it."""
