"""Runs what was compiled: arguments, arenas, variables, threads. May import nothing of lowering or jit."""
