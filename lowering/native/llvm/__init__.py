"""Functions of the loop IR become LLVM IR: `emit` writes them, with a file for each kind of operation and each family of
processors. It may import what loops are made of, `target` and `machine_code`, and no other folder of `native`.
"""
