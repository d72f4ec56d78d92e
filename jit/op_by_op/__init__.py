"""The compilers, operations and recordings that the core runtime is handed, one operator at a time. May import tracing,
stages and lowering."""
