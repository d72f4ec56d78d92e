"""Reference semantics of TensorFlow's operations in NumPy, one function each, in a table by name.

A reference takes the operation (for its attributes and the types of its results) and the values of its operands, and returns
the values of its results. It is close to the text of TensorFlow's documentation and shares no code with the lowering to TOSA,
so that each can check the other. Numbers are arrays of the operands' dtypes; handles and lists are in `values`.
"""
from __future__ import annotations

from .table import REFERENCES, Reference, reference

__all__ = ["REFERENCES", "Reference", "reference"]

from . import (  # noqa: F401
    activations,
    arithmetic,
    contractions,
    diagonals,
    fourier,
    gradients,
    indexing,
    layout,
    lists,
    quantize,
    reductions,
    shapes,
    special,
    tensor_arrays,
    updates,
    windows,
)
