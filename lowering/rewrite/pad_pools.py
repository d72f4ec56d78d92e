"""Graph -> graph: a pad before a max pool becomes the pool's own padding if the pad value is never greater than any element
inside: then it never decides a maximum, and nothing has to be copied to have a border.

This holds for zeros around the result of a clamp from zero on, and for the least number around any tensor.
"""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..dialects.tosa.activation import Clamp
from ..dialects.tosa.pooling import MaxPool2D
from ..graph.graph import Module, Operation, Value
from .rewrite_operations import Definitions, rewrite_operations


def pad_pools(module: Module) -> Module:
    """Return the module with fewer pads before its pools; the pads stay, to be pruned."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, definitions: Definitions) -> Operation:
    return padded(operation, operation.op, definitions) if isinstance(operation.op, MaxPool2D) else operation


def padded(operation: Operation, pool: MaxPool2D, definitions: Definitions) -> Operation:
    """Return the pool of the unpadded input, or the operation unchanged."""
    border = definitions.get(operation.operands[0])
    if border is None or border.op.name != "tosa.pad" or pool.nan_mode != "PROPAGATE":
        return operation
    image, amounts, pad_value = (*border.operands, None, None)[:3]
    if image is None or amounts is None or amounts.constant is None or not never_greatest(pad_value, image, definitions):
        return operation
    numbers = [int(n) for n in amounts.constant.reshape(-1)]
    pad = tuple(a + b for a, b in zip(pool.pad, numbers[2:-2], strict=True))
    outside = any(numbers[:2]) or any(numbers[-2:]) or min(numbers) < 0
    if outside or any(n >= pool.kernel[i // 2] for i, n in enumerate(pad)):  # each window covers some element of the input
        return operation
    return replace(operation, op=replace(pool, pad=pad), operands=(image,))


def never_greatest(pad_value: Value | None, image: Value, definitions: Definitions) -> bool:
    """True if no element of the image is less than the pad value; a missing pad value is zero."""
    if pad_value is not None and pad_value.constant is None:
        return False
    number = 0.0 if pad_value is None or pad_value.constant is None else float(pad_value.constant.reshape(-1)[0])
    maker, element = definitions.get(image), image.tensor.element
    lowest = -math.inf if element.is_float else float(np.iinfo(element.dtype).min)
    return number <= (maker.op.min_val if maker is not None and isinstance(maker.op, Clamp) else lowest)
