"""A loop nest as data: its axes, indices and conditions, how it is cut into pieces and tiles, and plain loops over them.
It imports nothing of the other rooms here."""
