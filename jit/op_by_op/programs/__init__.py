"""Kernel programs run on the op-by-op runtime: `run_program` takes a program that `program_text` read."""
