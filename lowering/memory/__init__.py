"""The planner: an offset for every buffer, and a checker of plans. May import loops, kernels and machine_code."""
