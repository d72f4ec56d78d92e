"""Contractions of bytes: their factors, the packing of the factors, and the choice of a matrix unit (AMX) and its blocks."""
