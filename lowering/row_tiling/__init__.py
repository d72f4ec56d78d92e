"""Which kernels are tiled by rows together, in which order their rows run, and which buffers between them become rings or are
kept for one block only. Decided on kernels, before they have loops. Imports target, graph, elements and kernels."""
