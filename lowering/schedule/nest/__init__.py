"""Loop nests as data: axes, indices and conditions, cuts into pieces and tiles, and plain loops over them.
This package imports none of its sibling packages."""
