"""Contractions of float32 as sums of products of bfloat16 limbs on a matrix unit (AMX): when, in which blocks, and how they are
packed."""
