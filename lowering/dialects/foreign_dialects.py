"""MLIR dialects that occur in models and that nothing here compiles, with advice for each."""
from __future__ import annotations

STABLEHLO = ("StableHLO is not compiled: write the function with NumPy's names for @tosaic.jit, or give the model in another "
             "form that tosaic reads (.tflite, ONNX, a SavedModel, a .pt2)")
TORCH = "pass the module itself: tosaic.from_torch(module, x), or its .pt2 of torch.export.save"
LOWERED = "tosaic compiles operators of tensors: give the text from before they became loops, in TOSA's dialect"

ADVICE = {
    "stablehlo": STABLEHLO, "vhlo": STABLEHLO, "chlo": STABLEHLO, "mhlo": STABLEHLO, "sdy": STABLEHLO,
    "tfl": "give the .tflite itself: tosaic.load reads it",
    "torch": TORCH, "torch_c": TORCH, "aten": TORCH,
    "linalg": LOWERED, "affine": LOWERED, "memref": LOWERED, "bufferization": LOWERED, "vector": LOWERED,
    "llvm": LOWERED, "gpu": LOWERED, "spirv": LOWERED}
"""Advice, by dialect."""


def advice(spelling: str) -> str | None:
    """Return the advice for an operation of another dialect, by its name; None if there is none."""
    return ADVICE.get(spelling.partition(".")[0].strip('"'))


def dialect_in(data: bytes) -> str | None:
    """Return the foreign dialect whose name is in the first bytes of bytecode."""
    head = data[:1 << 14]
    if head[5:15].startswith(b"StableHLO"):
        return "vhlo"
    return next((name for name in ADVICE if b"\0" + name.encode() + b"\0" in head), None)
