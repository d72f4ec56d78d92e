"""Operators of ONNX by kind, and the interpreter of ONNX graphs. May import formulas, the emitter and TOSA's operators."""
