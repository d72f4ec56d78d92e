"""Python functions recorded as graphs: the traced tensor, NumPy's functions, control flow, variables. May import lowering's
graph and dialects."""
