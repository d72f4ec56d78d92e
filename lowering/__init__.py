"""Tensor graphs to loops, a memory plan, machine code and C. May import runtime; README.md walks through it."""
