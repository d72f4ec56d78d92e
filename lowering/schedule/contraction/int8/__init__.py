"""Contractions of bytes: four products at a time in each lane (VNNI), or on a matrix unit (AMX).
It imports `contraction`."""
