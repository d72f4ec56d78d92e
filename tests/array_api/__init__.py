"""The consortium's test suite of the Python array API standard, run on traced tensors: `python tests/array_api SUITE`."""
