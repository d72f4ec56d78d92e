"""The strategy for softmax and normalisation, and chains of kernels that run a block of rows at a time.
This package imports `elementwise` and the imports of `elementwise`."""
