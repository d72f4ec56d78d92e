"""Runs compiled code: arguments, arenas, variables, threads. May import nothing of lowering or jit."""
