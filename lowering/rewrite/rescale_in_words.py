"""Graph -> graph: RESCALE by 32-bit products and shifts that round, if that is exact. RESCALEs in float32 (`rescale_in_float`)
and powers of two stay unchanged.

The pass is for processors whose vectors have such instructions and no 64-bit elements (`pipeline`).
"""
from __future__ import annotations

from dataclasses import fields, replace

from ..dialects.tosa.rescale import Rescale
from ..dialects.tosaic.rescale_in_words import RescaleInWords, WordForm
from ..graph.graph import Module, Operation
from .rewrite_operations import Definitions, rewrite_operations


def rescale_in_words(module: Module) -> Module:
    """Return the module with another operator for each RESCALE for which words are enough."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, _: Definitions) -> Operation:
    op = operation.op
    if type(op) is not Rescale:
        return operation
    x, multiplier, shift, _before, after = operation.operands
    if WordForm.of(op, x, multiplier, shift, after) is None:
        return operation
    return replace(operation, op=RescaleInWords(*(getattr(op, f.name) for f in fields(op))))
