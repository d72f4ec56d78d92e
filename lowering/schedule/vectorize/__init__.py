"""An expression at a place, as vectors: loads, arithmetic, conditions, reductions, and the epilogue that stores results.
It imports `nest`."""
