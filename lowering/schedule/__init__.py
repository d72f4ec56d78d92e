"""Scheduling: kernels to functions of the loop IR. Each loop nest gets a strategy, each function its tasks for threads
(`schedule.py`). The subpackages, each of which imports only those before it: nest, vectorize, elementwise, row_reduction,
contraction, window, winograd."""
from .schedule import describe, lower, schedule

__all__ = ["describe", "lower", "schedule"]
