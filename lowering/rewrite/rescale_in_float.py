"""Graph -> graph: RESCALE between 8-bit tensors is computed in float32 if that is right for each of the 256 values: vector
units have no 32-bit product with a 64-bit result in as few instructions. Powers of two stay, which are shifts.

The pass is for processors that compute float32 in instructions (`pipeline`); elsewhere every RESCALE is computed in integers.
"""
from __future__ import annotations

from dataclasses import fields, replace

from ..dialects.tosa.rescale import Rescale
from ..dialects.tosaic.rescale_in_float import FloatForm, RescaleInFloat
from ..graph.graph import Module, Operation
from .rewrite_operations import Definitions, rewrite_operations


def rescale_in_float(module: Module) -> Module:
    """Return the module with another operator for each RESCALE for which float32 is enough."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, _: Definitions) -> Operation:
    op = operation.op
    if type(op) is not Rescale:
        return operation
    x, *constants = operation.operands
    form = FloatForm.of(op, x, constants)
    if form is None or form.factors.left_shift is not None or not form.is_right:
        return operation
    return replace(operation, op=RescaleInFloat(*(getattr(op, f.name) for f in fields(op))))
