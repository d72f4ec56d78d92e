"""The strategies of reductions whose lanes are neighbouring outputs: depthwise convolutions, pools, sums of columns.
It imports `contraction`, `row_reduction` and what these do."""
