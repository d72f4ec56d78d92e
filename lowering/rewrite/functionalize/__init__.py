"""Executor graphs -> TOSA, by live bits: every value has a bit that says when it is live. No pattern of TensorFlow's is looked
for, so that nothing that is well-formed is refused.

`live_bits` gives each frame its items in order and their bits, `emit` turns items with the same bit into COND_IF, and `loops`
turns a frame into WHILE_LOOP: what TensorFlow calls functionalisation.
"""
from __future__ import annotations

from . import functionalize  # noqa: F401  fills the table of special operations
