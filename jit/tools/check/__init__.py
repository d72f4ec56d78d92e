"""Compiled code against the interpreter, and an import against its source. May import models' sources and lowering."""
