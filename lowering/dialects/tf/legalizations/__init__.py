"""Legalizations of TensorFlow's operations to TOSA, one function each, in a table by name.

A legalization takes the emitter, the operation (for its attributes and declared types) and its operands, emits TOSA, and
returns its results. Operands have static types; values that are known at compile time have their data in `constant`, and the
emitter folds operators on them alone, so that arithmetic on shapes needs no special code. Control flow, calls and variables are
in `rewrite.tensorflow`. Nothing here is shared with `references`, which define the operations' semantics.
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
