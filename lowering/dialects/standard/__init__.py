"""Operations of MLIR's own dialects, beside TOSA's and TensorFlow's: `arith`, `tensor`, `func`, `scf`, `cf`, `quant`."""
