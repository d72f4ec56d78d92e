"""Executor graphs -> TOSA, by live bits: every value has a bit that tells when it is live. The pass matches no TensorFlow
patterns, so that it refuses no well-formed graph.

`live_bits` gives each frame its items in order and their bits, `emit` turns items with the same bit into COND_IF, and `loops`
turns a frame into WHILE_LOOP. TensorFlow calls this functionalisation.
"""
from __future__ import annotations

from . import functionalize  # noqa: F401  fills the table of special operations
