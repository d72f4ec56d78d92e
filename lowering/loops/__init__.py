"""The loop IR: a kernel as loops over explicit vectors, with its builder, text, verifier, interpreter, dependence analysis and
cost model. Imports target, graph, elements and kernels; what writes loops (`schedule`) and what emits them (`native`) import
it."""
