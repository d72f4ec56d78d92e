"""CAST: the same number in another type. TOSA 1.0, section 2.12."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....runtime.errors import require
from ...elements.expression import Const, Expr, apply, cast, clamp, is_float, select
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    I1,
    I8,
    I16,
    I32,
    I64,
    ITEM_SIZES,
    UI8,
    UI16,
    UI32,
    UI64,
    Array,
    BlockScaled,
    ElementType,
    TensorType,
)
from .block_scaling import nearest_records, real
from .elementwise import EXTENSION, UNSIGNED, arithmetic, as_number, names, rounded, tensor
from .product_types import COMPOSITES

INTEGERS, FLOATS, BYTES = (I1, I8, I16, I32, I64), (F16, BF16, F32), (F8E4M3, F8E5M2)
LONG_FLOATS = tuple(EXTENSION)
NUMBERS = (*INTEGERS, *FLOATS, *LONG_FLOATS, *UNSIGNED)
TARGETS: dict[ElementType, tuple[ElementType, ...]] = {
    **dict.fromkeys((*INTEGERS, *UNSIGNED), NUMBERS),
    **dict.fromkeys(FLOATS, (*NUMBERS, *BYTES, *COMPOSITES)),
    **dict.fromkeys(LONG_FLOATS, (*NUMBERS, *BYTES)),
    **dict.fromkeys(BYTES, (*FLOATS, *LONG_FLOATS, *BYTES, *COMPOSITES)),
    **dict.fromkeys(COMPOSITES, (*FLOATS, *BYTES)),
}
"""Types that each type may be cast to: the specification's combinations, and bool with floats, i64, f64, unsigned numbers, and
any pair of floats, for which the specification's pseudo-code is meaningful, too."""


class Cast(Op, name="tosa.cast"):
    """Float to integer rounds to the nearest, ties to even, and saturates (NaN: 0); integers wrap; bool is `!= 0`.
    Floats round to the nearest; what is too large is infinite, NaN in f8E4M3FN. `input_unsigned` (TOSA 1.1) takes the
    bits of an integer for a number without sign."""
    to: ElementType | None = from_result()
    input_unsigned: bool = attribute("bool", default=False, elided=True)

    def infer(self, x: Operand) -> TensorType:
        found = tensor(x)
        require(found.element in TARGETS, f"{self.name} does not take {found.element}",
                help=f"it takes {names(TARGETS)}")
        targets = TARGETS[found.element]
        require(self.to is not None, f"{self.name} needs the element type of its result")
        require(self.to in targets, f"{self.name} does not make {self.to} from {found.element}",
                help=f"it makes {names(targets)}")
        assert self.to is not None
        require(not self.input_unsigned or found.element.is_integer, f"{found.element} has no unsigned numbers",
                kind="attribute", help="only an integer may be input_unsigned")
        return found.with_element(self.to)

    def reference(self, x: Array) -> Array:
        assert self.to is not None
        target = self.to.dtype
        with np.errstate(all="ignore"):
            if isinstance(self.to, BlockScaled):
                return nearest_records(x, self.to)
            if x.dtype.names:
                return rounded(real(x), target)
            if self.to == I1:
                return np.asarray(x != 0)
            if self.input_unsigned:
                x = x.view(f"u{x.dtype.itemsize}")
            if x.dtype.kind in "biu":
                exact = x if target.kind in "iu" or x.dtype.itemsize == 8 else x.astype(np.float64)
                return rounded(exact, target)
            wide = x.astype(np.float64)
            return rounded(wide, target) if self.to.is_float else saturated(np.rint(wide), target)

    def element(self, out: TensorType, x: Tensor) -> Element:
        convert = converted_unsigned if self.input_unsigned and x.type.element.kind == "signed" else converted
        return lambda *index: convert(x[index], out.element)


def saturated(x: Array, target: np.dtype[Any]) -> Array:
    """Return whole numbers in float64 as integers: NaN is 0, numbers out of range the nearest in it."""
    info = np.iinfo(target)
    limit = 2.0 ** (info.bits - (target.kind == "i"))
    inside = np.clip(np.where(np.isnan(x), 0, x), float(info.min), min(np.nextafter(limit, 0), float(info.max)))
    return np.where(x >= limit, info.max, inside.astype(target)).astype(target)


def converted(x: Expr, target: ElementType) -> Expr:
    """Return x as a number of type `target`."""
    if x.dtype == target.storage:
        return x
    if x.dtype.startswith("uint"):
        return converted_unsigned(cast(x, x.dtype.removeprefix("u"), bits=True), target)
    if target.kind == "unsigned":
        return cast(bits_of(x, target), target.storage, bits=True)
    if target == I1:
        return as_number(x).equals(0) ^ 1
    if x.dtype == "bool":
        number = arithmetic(target.storage)
        return cast(select(x, Const(1, number), Const(0, number)), target.storage)
    if target.is_integer:
        return integer_of(as_number(x), target) if is_float(x.dtype) else cast(x, target.storage)
    if target.is_float and "float64" in (x.dtype, target.storage):
        return cast(x, target.storage)
    if target == BF16 and x.dtype in ("int32", "int64"):
        x = with_sticky_bit(x)
    return cast(cast(x, "float32"), target.storage)


def converted_unsigned(x: Expr, target: ElementType) -> Expr:
    """Return the bits of x as an unsigned number, of type `target`."""
    if target == I1 or (target.is_integer and ITEM_SIZES[target.storage] <= ITEM_SIZES[x.dtype]):
        return converted(x, target)
    if x.dtype != "int64":
        wide = "int64" if x.dtype == "int32" else "int32"
        return converted(cast(x, wide) & ((1 << 8 * ITEM_SIZES[x.dtype]) - 1), target)
    half = apply("lshr", x, 1) | (x & 1)  # the last bit breaks ties, as any bit below the rounding one does
    double = as_number(converted(half, target)) * 2.0
    return cast(select(x < 0, double, as_number(converted(x, target))), target.storage)


def bits_of(x: Expr, target: ElementType) -> Expr:
    """Return x as an unsigned number, in the signed integer type with its bits."""
    signed = SIGNED[target]
    if not is_float(x.dtype):
        return converted(x, signed)
    if target.bits <= 16:
        whole = clamp(integer_of(as_number(x), I32), 0, target.maximum)
    elif target.bits == 32:
        whole = clamp(integer_of(as_number(x), I64), 0, target.maximum)
    else:
        whole = long_bits(apply("max", as_number(x), 0.0))
    return cast(whole, signed.storage)


SIGNED = {UI8: I8, UI16: I16, UI32: I32, UI64: I64}


def long_bits(x: Expr) -> Expr:
    """Return a nonnegative float as the nearest 64-bit number: from 2^63 on, the rest above 2^63 is converted."""
    is_large = x >= 2.0**63
    lower = integer_of(select(is_large, x - 2.0**63, x), I64)
    return select(x < 2.0**64, select(is_large, lower ^ (-1 << 63), lower), select(x.equals(x), Const(-1, "int64"), lower))


def integer_of(x: Expr, target: ElementType) -> Expr:
    """Return a float32 or float64 as the nearest integer of type `target`; the converted number is always in range."""
    nearest = apply("rint", x)
    whole = select(nearest.equals(nearest), nearest, Const(0.0, x.dtype))
    if target.bits <= 16:
        return cast(cast(clamp(whole, float(target.minimum), float(target.maximum)), "int32"), target.storage)
    limit = 2.0 ** (target.bits - 1)  # the greatest integer is not a float32, and the greatest 64-bit one not a float64
    inside = clamp(whole, -limit, float(np.nextafter(np.array(limit, x.dtype), np.array(0, x.dtype))))
    return select(whole >= limit, Const(target.maximum, target.storage), cast(inside, target.storage))


def with_sticky_bit(x: Expr) -> Expr:
    """Return an integer with few enough bits to be a float32 that rounds to the same bfloat16: the low bits of a large number
    only decide on which side of a tie it is, and one bit is enough for that."""
    result = x
    for limit, unit in UNITS[x.dtype]:
        low = x & (unit - 1)
        large = (x & -unit) | select(low.equals(0), Const(0, x.dtype), Const(unit // 2, x.dtype))
        is_small = ((x + limit) & ~(2 * limit - 1)).equals(0)
        result = select(is_small, result, large)
    return result


UNITS = {"int32": ((1 << 24, 1 << 8),), "int64": ((1 << 24, 1 << 14), (1 << 37, 1 << 27), (1 << 50, 1 << 40))}
"""(limit, unit): from `limit` on, the low bits below `unit` become one bit: at least 10 and at most 24 bits are left."""
