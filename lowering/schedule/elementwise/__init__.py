"""The strategies for nests whose outputs share no work: elementwise vectors and transposes.
This package imports `nest` and `vectorize`."""
