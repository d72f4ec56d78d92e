"""Kernels -> functions of the loop IR."""
from .schedule import describe, lower, schedule

__all__ = ["describe", "lower", "schedule"]
