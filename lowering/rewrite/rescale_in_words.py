"""Graph -> graph: RESCALE by products and shifts of 32 bits that round, where that is exact. What float32 computes
(`rescale_in_float`) and powers of two stay as they are.

It is for processors whose vectors have such instructions and no elements of 64 bits (`pipeline`).
"""
from __future__ import annotations

from dataclasses import fields, replace

from ..dialects.tosa.rescale import Rescale
from ..dialects.tosaic.rescale_in_words import RescaleInWords, WordForm
from ..graph.graph import Module, Operation
from .rewrite_operations import Definitions, rewrite_operations


def rescale_in_words(module: Module) -> Module:
    """The module with another operator for each RESCALE for which words are enough."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, _: Definitions) -> Operation:
    op = operation.op
    if type(op) is not Rescale:
        return operation
    x, multiplier, shift, _before, after = operation.operands
    if WordForm.of(op, x, multiplier, shift, after) is None:
        return operation
    return replace(operation, op=RescaleInWords(*(getattr(op, f.name) for f in fields(op))))
