"""The strategies for reductions whose lanes are neighbouring outputs: depthwise convolutions, pools, sums of columns.
This package imports `contraction`, `row_reduction` and what these import."""
