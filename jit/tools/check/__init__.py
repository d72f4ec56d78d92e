"""Compiled code against the interpreter, and an import against its source. May import what graphs were made from and
lowering."""
