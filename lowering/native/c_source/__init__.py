"""Programs as C99 source, for compilers that LLVM does not replace: the same interface, header, arena and results as
`c_object`'s objects. It may import `driver`, `c_object`, and of `llvm` only what knows no LLVM (the formats of small floats).
"""
