"""The comparison with other compilers and libraries: `python tests/bench/peers`."""
