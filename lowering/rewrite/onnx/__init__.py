"""Graphs of ONNX become graphs of TOSA (`translate`). May import the dialects and the passes beside it."""
