"""What is known of integers that are not known when compiling: that some are others plus constants. A slice from `start` to
`start + 4` has 4 elements, wherever it starts."""
from __future__ import annotations

import numpy as np

from ...graph.graph import Value
from ...graph.types import Array, ElementType
from ..emitter import Emitter


def difference_of(e: Emitter, a: Value, b: Value) -> Array | None:
    """a - b, of equally many integers, where that is known."""
    (first, here), (second, there) = offset_of(e, a), offset_of(e, b)
    if a.tensor.size != b.tensor.size or first is not second:
        return None
    return np.array(here - there)


def is_within(inner: ElementType, outer: ElementType) -> bool:
    """Whether integers stay what they are in another type."""
    return inner.is_integer and inner.kind == outer.kind and inner.bits <= outer.bits


def offset_of(e: Emitter, x: Value) -> tuple[Value | None, Array]:
    """The integers that x is constants away from, and these constants; None for zeros."""
    size = x.tensor.size
    offset = np.zeros(size, np.int64)
    while x.constant is None and (made := e.definitions.get(x)) is not None:
        operands = made.operands
        known = [None if v.constant is None else v.constant.reshape(-1).astype(np.int64) for v in operands]
        match made.op.name, known:
            case "tosa.reshape", _:
                x = operands[0]
            case "tosa.cast", _ if is_within(operands[0].tensor.element, x.tensor.element):
                x = operands[0]
            case "tosa.add", [None, np.ndarray() as found] if operands[0].tensor.size == size:
                x, offset = operands[0], offset + found
            case "tosa.add", [np.ndarray() as found, None] if operands[1].tensor.size == size:
                x, offset = operands[1], offset + found
            case "tosa.sub", [None, np.ndarray() as found] if operands[0].tensor.size == size:
                x, offset = operands[0], offset - found
            case _:
                return x, offset
    if x.constant is not None:
        return None, offset + x.constant.reshape(-1).astype(np.int64)
    return x, offset
