"""The strategies of matrix products and convolutions, in the form of BLIS: recognised by their pattern (`recognise`), a
micro-kernel chosen (`choice`, `micro_kernels`), operands packed (`layout`, `pack_a`, `pack_b`), and loops around the
micro-kernel (`macro_kernel`). There is no im2col: a window is read in place, and where its border or its stride is in the way
`padded_input` copies the input. It imports `elementwise` and what that does."""
