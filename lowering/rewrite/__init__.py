"""Graph -> graph: one pass per module, in the order of `lowering/pipeline.py`. The modules may import the readers and writers
of graphs, nothing of later stages.
"""
