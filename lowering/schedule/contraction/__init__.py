"""The strategies of matrix products and convolutions: recognised by their pattern, packed, tiled in registers and in blocks.
It imports `elementwise` and what that does."""
