"""Fusion: which operators become one kernel, and the table of steps. May import kernels, elements, dialects and graph."""
