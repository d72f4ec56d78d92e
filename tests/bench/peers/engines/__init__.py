"""One module for each peer: `load(task)`, and `imports(task)` where some of its imports come late."""
