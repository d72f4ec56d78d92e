"""Translation of ONNX graphs into TOSA graphs (`translate`). May import the dialects and the passes beside it."""
