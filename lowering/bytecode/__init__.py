"""MLIR bytecode -> the tensor graph, for what a converter in another process writes: constants stay bytes, nothing is text."""
