"""Programs as an object for C: its interface, the header that declares it, and the functions that it has beside the drivers.
It may import `llvm` and `driver`, and not `process`.
"""
