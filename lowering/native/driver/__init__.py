"""The driver of a program, which runs its steps and finds their memory, and the module that has it beside the kernels.
It may import `llvm`, and neither `process` nor `c_object`, which put drivers to use.
"""
