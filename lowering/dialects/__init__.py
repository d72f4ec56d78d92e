"""Operators, one class each, in a folder for each dialect. May import graph and elements."""
