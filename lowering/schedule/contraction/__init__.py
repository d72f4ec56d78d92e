"""The strategies of matrix products and convolutions: recognised by their pattern, packed, tiled in registers and in blocks.
There is no im2col: a window is read in place, and where its border or its stride is in the way `padded_input` copies the
input. It imports `elementwise` and what that does."""
