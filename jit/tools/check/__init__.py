"""Comparison of compiled code with the interpreter, and of an import with its source. May import the sources of graphs and
lowering."""
