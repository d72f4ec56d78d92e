"""Expressions of one element of a tensor, affine indices, and what is known of them. May import graph's types."""
