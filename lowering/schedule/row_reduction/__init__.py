"""The strategy of softmax and normalisation, and chains of kernels that run a block of rows at a time.
It imports `elementwise` and what that does."""
