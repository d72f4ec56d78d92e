"""MLIR bytecode -> the tensor graph, for the output of another process's converter: constants stay bytes, nothing is text."""
