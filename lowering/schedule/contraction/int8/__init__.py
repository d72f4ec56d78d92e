"""Contractions of bytes: their factors, how they are packed, and when and in which blocks a matrix unit (AMX) computes them."""
