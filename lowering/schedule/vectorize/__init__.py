"""The vector values of an expression at a point: loads, arithmetic, conditions, reductions, and the epilogue that stores
results. This package imports `nest`."""
