"""Element types that convolutions and products of matrices take together. TOSA 1.1, tensor operators.

A table maps the types of both factors and of the result to the possible accumulators. `checked` finds an entry, or names the
first type that does not fit those before it. f64 is an extension (`elementwise.EXTENSION`).
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from ...graph.types import (
    BF16,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I4,
    I8,
    I16,
    I32,
    I48,
    I64,
    MXINT8,
    ElementType,
    block_scaled,
)
from .operands import one_of

Types = tuple[ElementType, ElementType, ElementType]
Table = Mapping[Types, tuple[ElementType, ...]]

BYTES, HALVES = (F8E4M3, F8E5M2), (F16, BF16)
COMPOSITES = tuple(map(block_scaled, (*BYTES, F6E3M2, F6E2M3, F4E2M1, MXINT8)))
NARROW = (*BYTES, *HALVES, *COMPOSITES)

PLAIN_CONVOLUTIONS: Table = {
    (I8, I8, I32): (I32,), (I8, I4, I32): (I32,), (I16, I8, I48): (I48,),
    **{(e, e, F16): (F16,) for e in BYTES},
    **{(e, e, F32): (F32,) for e in BYTES},
    (F16, F16, F16): (F16, F32), (BF16, BF16, BF16): (F32,), (F32, F32, F32): (F32,), (F64, F64, F64): (F64,),
}
"""DEPTHWISE_CONV2D: factors of one type (except i4 weights)."""
CONVOLUTIONS: Table = {
    **{(a, b, F32): (F32,) for a, b in product((*NARROW, F32), repeat=2)},
    **{(a, b, F16): (BF16, F32) if BF16 in (a, b) else (F16, BF16, F32) for a, b in product(NARROW, repeat=2)},
    **{(a, b, BF16): (BF16, F32) for a, b in product(NARROW, repeat=2) if F16 not in (a, b)},
    **{types: found for types, found in PLAIN_CONVOLUTIONS.items() if types[0].is_integer or types[0] == F64},
}
"""CONV2D, CONV3D and TRANSPOSE_CONV2D: floats of any two types into fp32; into fp16 unless one is fp32; and, as Arm's suite
has it, into bf16 unless one is fp16 or fp32."""

EXTENSION_PRODUCTS: Table = {(e, e, e): (e,) for e in (F64, I32, I64)}
"""Products of types that TOSA does not multiply (`elementwise.EXTENSION`). Sums of integers wrap."""
PRODUCTS: Table = {
    (I8, I8, I32): (I32,), (I16, I16, I48): (I48,),
    (F16, F16, F16): (F16,), (F16, F16, F32): (F32,), (BF16, BF16, F32): (F32,), (F32, F32, F32): (F32,),
    **{(a, b, F16): (F16,) for a, b in product(BYTES, repeat=2)},
    **{(a, b, F32): (F32,) for a, b in product(BYTES, repeat=2)},
    **EXTENSION_PRODUCTS,
}
"""MATMUL. A result is its own accumulator."""
TRANSPOSED_PRODUCTS: Table = {
    (I8, I8, I32): (I32,), (I16, I16, I48): (I48,), (F16, F16, F16): (F16,),
    **{(a, b, F32): (F32,) for a, b in product((*NARROW, F32), repeat=2)},
    **{(a, b, BF16): (BF16,) for a, b in product(NARROW, repeat=2) if (a, b) != (F16, F16)},
    **EXTENSION_PRODUCTS,
}
"""MATMUL_T: floats of any two types into fp32, into bf16 unless one is fp32 or both are fp16."""


def usual_result(table: Table, first: ElementType, second: ElementType) -> ElementType:
    """Return the result's default type: the first of the table's."""
    return next(types[2] for types in table if types[:2] == (first, second))


def checked(table: Table, found: Sequence[ElementType], names: Sequence[str]) -> tuple[ElementType, ...]:
    """Return the accumulators for types in the table; `names` are the names of the operands with these types, for the Problem
    of a type that does not fit those before it. `found` may be incomplete."""
    if len(found) == 3 and (accumulators := table.get((found[0], found[1], found[2]))):
        return accumulators
    for number, (element, name) in enumerate(zip(found, names)):
        before = tuple(found[:number])
        allowed = tuple(dict.fromkeys(types[number] for types in table if types[:number] == before))
        beside = f", beside {' and '.join(map(str, before))}," if before else ""
        one_of(element, allowed, f"{name}{beside}")
    return next(accumulators for types, accumulators in table.items() if types[:len(found)] == tuple(found))
