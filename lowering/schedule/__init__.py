"""Kernels become functions of the loop IR: each loop nest gets a strategy, each function its tasks for threads (`schedule.py`).
Its rooms, each of which imports only those before it: nest, vectorize, elementwise, row_reduction, contraction, window,
winograd."""
from .schedule import describe, lower, schedule

__all__ = ["describe", "lower", "schedule"]
