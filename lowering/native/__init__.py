"""Loops and a plan become code: an LLVM module of kernels and their drivers (`llvm`, `driver`), for this process (`process`) or
as an object with its C header (`c_object`). It may import every room of `lowering` but the pipeline.
"""
