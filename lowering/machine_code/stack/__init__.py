"""The stack use of an object's functions, read from their machine code: `frames` follows the stack pointer through a function,
`bound` adds up the calls. It may import `target` and the runtime, as the rest of `machine_code`.
"""
