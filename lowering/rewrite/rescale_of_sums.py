"""Graph -> graph: RESCALE of a convolution's sums, with constants that are added before the product. The maximum magnitude of
the sums follows from the number of terms and from the bias, which must be known.

The pass is for processors that multiply even words of vectors, where 64-bit sums are twice the work (`pipeline`).
"""
from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np

from ..dialects.tosa.convolution import Convolution
from ..dialects.tosa.rescale import Rescale
from ..dialects.tosaic.rescale_of_sums import ROOM, RescaleOfSums, SumForm
from ..graph.graph import Module, Operation
from ..graph.types import I32
from .rewrite_operations import Definitions, rewrite_operations

LARGEST_PRODUCT = 255 * 255
"""Maximum product of two bytes, each less its zero point."""


def rescale_of_sums(module: Module) -> Module:
    """Return the module with another operator for each RESCALE of a convolution that has one."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, definitions: Definitions) -> Operation:
    op = operation.op
    if type(op) is not Rescale:
        return operation
    x, multiplier, shift, _, output_zp = operation.operands
    if not is_small(definitions.get(x)) or SumForm.of(op, multiplier, shift, output_zp) is None:
        return operation
    return replace(operation, op=RescaleOfSums(*(getattr(op, f.name) for f in fields(op))))


def is_small(operation: Operation | None) -> bool:
    """True if an operation is a convolution of bytes whose sums, bias included, fit for any operands."""
    if operation is None or not isinstance(operation.op, Convolution) or operation.results[0].tensor.element != I32:
        return False
    x, weights, bias, *_ = operation.operands
    terms, channels = weights.tensor, operation.results[0].tensor.dims[-1]
    if bias.constant is None or not bias.constant.size or x.tensor.element.bits > 8 or terms.element.bits > 8:
        return False
    return math.prod(terms.dims) // channels * LARGEST_PRODUCT + int(np.abs(bias.constant.astype(np.int64)).max()) < ROOM
