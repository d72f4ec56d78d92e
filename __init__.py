"""tosaic compiles TOSA tensor graphs to native code, from Python, with nothing to build."""
