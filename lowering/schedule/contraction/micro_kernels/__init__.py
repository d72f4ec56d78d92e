"""The micro-kernels of contractions, one for each instruction that sums products: the choice of the micro-kernel, its step of
K, and the packing of its operands.

    multiply         fused multiply-adds of floats; products of integers that are added
    multiply_bytes   bytes that are widened as they are loaded, one number at a time
    dot2             bytes as 16 bits, two to a lane (VPMADDWD)
    dot4, dot8       four bytes to a lane (VNNI, SDOT); two rows by two columns of eight bytes (SMMLA)
    dual_multiply    two pairs of 16 bits (SMLAD)
    widening         bytes of columns that are widened once for all rows (VWMACC, SMLAL)
    vector_dot       a vector of bytes into a scalar register (VMLADAVA)
    amx_bytes        tiles of bytes; amx_limbs: tiles of bfloat16 limbs of float32
"""
