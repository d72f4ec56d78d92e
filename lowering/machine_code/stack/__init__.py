"""How much stack the functions of an object take, read from their machine code: `frames` follows the stack pointer through a
function, `bound` adds up the calls. It may import `target` and the runtime, as the rest of `machine_code`.
"""
