"""LLVM IR is written here, and becomes machine code: an object file, or an image that this process can map.
It stands below `memory` and `native`, and may import `target` and the runtime only.
"""
