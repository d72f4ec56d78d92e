"""Convolutions of 3 x 3 with fewer multiplications (Winograd, 1980; Lavin and Gray, 2016): tiles of inputs and the weights are
transformed, multiplied by one matrix product for each position in a tile, and transformed back.
This package imports `contraction` and the imports of `contraction`."""
