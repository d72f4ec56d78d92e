"""The compilers, operations and recordings that the core runtime uses, one operator at a time. May import tracing, stages and
lowering."""
