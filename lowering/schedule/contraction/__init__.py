"""The strategies for matrix products and convolutions, in the form of BLIS: match the pattern (`recognise`), choose a
micro-kernel (`choice`, `micro_kernels`), pack the operands (`layout`, `pack_a`, `pack_b`), and write the loops around the
micro-kernel (`macro_kernel`). There is no im2col: a window is read in place, or `padded_input` copies the input if the window's
border or stride prevents that. This package imports `elementwise` and the imports of `elementwise`."""
