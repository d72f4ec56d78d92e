"""Numbers seen as the bits that they are: as another type of as many bytes, or, as TensorFlow's Bitcast has it, as several
narrower numbers along a last axis, and back. The lowest bits are the first."""
from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np

from ...runtime.errors import require
from ..graph.graph import Value
from ..graph.operator import OPERATORS
from ..graph.types import BY_STORAGE, I32, I64, ElementType, TensorType
from .layout import part
from .term import Term
from .tosa_builder import TosaBuilder


def seen_as(e: TosaBuilder, x: Value, element: ElementType) -> Value:
    """The bits of x as numbers of a type of as many bytes; of integers it is a conversion, which wraps."""
    own = x.tensor.element
    if own == element or (own.is_integer and element.is_integer and own.itemsize == element.itemsize):
        return e.cast(x, element)
    if not x.tensor.size:
        return e.zeros(x.tensor.with_element(element))
    return e.add(OPERATORS["tosaic.bitcast"](to=element), x)[0]


def bitcast(e: TosaBuilder, x: Value, element: ElementType) -> Value:
    """The bits of x as numbers of any type. Narrower ones have an axis more, whose numbers make one of x; of wider ones the
    last axis of x makes one."""
    own = x.tensor.element
    for each in (own, element):
        require((each.is_integer or each.is_float) and each.bits >= 8, f"it does not take the bits of {each}", kind="type")
    dims, count = x.tensor.dims, max(own.itemsize, element.itemsize) // min(own.itemsize, element.itemsize)
    if count == 1:
        return seen_as(e, x, element)
    if own.itemsize < element.itemsize:
        require(bool(dims) and dims[-1] == count, f"{count} numbers of {own} make one of {element}: the last extent of "
                f"{x.type} must be {count}", kind="shape")
    result = TensorType((*dims, count) if own.itemsize > element.itemsize else dims[:-1], element)
    if not x.tensor.size:
        return e.zeros(result)
    return narrowed(e, x, element, count) if own.itemsize > element.itemsize else widened(e, x, element, count)


def narrowed(e: TosaBuilder, x: Value, element: ElementType, count: int) -> Value:
    """Each number as `count` narrower ones along a new last axis."""
    narrow, dims = integer(element.itemsize), x.tensor.dims
    code = working(Term(e, seen_as(e, x, integer(x.tensor.element.itemsize))))
    width = 8 * element.itemsize
    parts = [e.reshape((code >> i * width if i else code).cast(narrow).value, (*dims, 1)) for i in range(count)]
    return seen_as(e, e.concat(parts, len(dims)), element)


def widened(e: TosaBuilder, x: Value, element: ElementType, count: int) -> Value:
    """The `count` numbers of the last axis as one."""
    whole, axis, width = integer(element.itemsize), x.tensor.rank - 1, 8 * x.tensor.element.itemsize
    code, wide = Term(e, seen_as(e, x, integer(x.tensor.element.itemsize))), I64 if element.itemsize > 4 else I32
    code = code.cast(wide) & ((1 << width) - 1)
    parts = [Term(e, part(e, code.value, axis, i, i + 1)) for i in range(count)]
    found = reduce(or_, [each << i * width if i else each for i, each in enumerate(parts)])
    return seen_as(e, e.reshape(found.cast(whole).value, x.tensor.dims[:-1]), element)


def working(x: Term) -> Term:
    """Integers in a type that TOSA computes in."""
    return x.cast(I64 if x.element.itemsize > 4 else I32)


def integer(itemsize: int) -> ElementType:
    """The integer of so many bytes, with a sign."""
    return BY_STORAGE[np.dtype(f"i{itemsize}").name]
