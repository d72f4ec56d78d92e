"""Kernel programs run on the op-by-op runtime: `run_program` takes what `lowering.dialects.corert` read."""
