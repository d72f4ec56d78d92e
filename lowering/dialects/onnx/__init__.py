"""Operators of ONNX by kind, and the interpreter that runs graphs of them. May import formulas, the emitter and TOSA's
operators."""
