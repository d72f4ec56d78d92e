"""Kernel programs run on the op-by-op runtime: `run_program` takes what `program_text` read."""
