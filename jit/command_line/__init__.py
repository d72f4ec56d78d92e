"""The command `tosaic`. May import everything in jit."""
