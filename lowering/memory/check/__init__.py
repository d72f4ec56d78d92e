"""A plan replayed step by step. Shares no code with the planner: it may import the plan's data, loops and kernels."""
