"""What TensorFlow's operations are in TOSA, one function each, in a table by name.

A legalization takes the emitter, the operation (for its attributes and declared types) and its operands, and gives its results,
having emitted TOSA for them. Operands have static types; what is known when compiling has its data in `constant`, and what is
made of that alone is folded by the emitter, so that arithmetic on shapes needs nothing of its own. Control flow, calls and
variables are in `rewrite.tensorflow`. Nothing here is shared with `references`, which say what operations mean.
"""
from __future__ import annotations

from .table import LEGALIZATIONS, Legalization, legalization

__all__ = ["LEGALIZATIONS", "Legalization", "legalization"]

from . import (  # noqa: F401
    activations,
    along_axis,
    angles,
    arithmetic,
    assertions,
    bits,
    comparisons,
    constants,
    contractions,
    convolutions,
    diagonals,
    division,
    einsum,
    fourier,
    gradients,
    indexing,
    joining,
    layout,
    lists,
    normalization,
    pooling,
    powers,
    quantize,
    quantize_and_dequantize,
    reductions,
    resize,
    rounding,
    shapes,
    slicing,
    special,
    tensor_arrays,
    transcendental,
    writing,
)
