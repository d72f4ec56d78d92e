"""The micro-kernels, one for each instruction that sums products: what a step of K does, and how its operands are packed."""
