"""Row tiling: which kernels are tiled by rows together, in which order their rows run, and which buffers between them become
rings or are kept for one block only. It works on kernels that have no loops yet. Imports target, graph, elements and
kernels."""
