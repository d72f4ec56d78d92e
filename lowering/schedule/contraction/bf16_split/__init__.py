"""Contractions of float32 as sums of products of bfloat16 limbs on a matrix unit (AMX): choice, blocks, and packing."""
