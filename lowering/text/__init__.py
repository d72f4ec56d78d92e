"""MLIR text: `reader` makes a graph of it, `printer` text of a graph."""
