"""The tensor graph, its types, its verifier, and what an operator is. May import runtime alone."""
