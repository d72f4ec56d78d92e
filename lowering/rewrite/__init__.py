"""Graph -> graph: one pass in each module, in the order of `lowering/pipeline.py`; what reads and writes graphs may be
imported, nothing of later stages.
"""
