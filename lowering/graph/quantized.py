"""Quantized element types of MLIR's quant dialect: integers (or floats) in storage, and what real numbers they stand for.

    !quant.uniform<i8:f32, 0.01:-3>                       real = 0.01 * (stored - -3)
    !quant.uniform<i8<-127:127>:f32:0, {0.1,0.2:1}>       a scale and a zero point for each index along axis 0
    !quant.any<i8<-8:7>>                                  stored like this, parameters not given
    !quant.calibrated<f32<-1.0:2.5>>                      floats that were seen in this range

TOSA's operators hold scales and zero points themselves. So a tensor of such a type is, for type rules and for code, one of
its storage type (`storage_type`); its parameters are kept beside, and checked against the operators' (`agreement`).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...runtime.errors import Problem, require
from ...runtime.quantization import Quantization
from ...runtime.records import dataclass
from .types import I4, I8, I16, I32, UI8, UI16, UI32, ElementType, TensorType

STORAGE: dict[str, ElementType] = {"i4": I4, "i8": I8, "i16": I16, "i32": I32, "u8": UI8, "u16": UI16, "u32": UI32}
"""Integers that may hold quantized numbers, by their spelling in a quantized type."""

LEAST_F32, GREATEST_F32 = 2.0 ** -149, (2.0 - 2.0 ** -23) * 2.0 ** 127
"""Positive numbers that a float32 holds."""


@dataclass(frozen=True, slots=True)
class Quantized(ElementType):
    """A quantized element type. It counts as its storage type in bits, kind and NumPy dtype.

    `stored` is that storage type, of which `low` to `high` are used; `expressed` the type of the real numbers, if it is
    given. `scales` and `zero_points` have one entry, or one for each index along `axis`; none where they are not given.
    """
    stored: ElementType
    low: float
    high: float
    expressed: ElementType | None = None
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def minimum(self) -> int:
        """Least stored integer."""
        return int(self.low)

    @property
    def maximum(self) -> int:
        """Greatest stored integer."""
        return int(self.high)


def uniform(storage: str, expressed: ElementType, scales: Sequence[float], zero_points: Sequence[int] | None = None,
            axis: int | None = None, limits: tuple[int, int] | None = None) -> Quantized:
    """`!quant.uniform`: real = scale * (stored - zero_point), one pair for all, or one for each index along `axis`. Raises
    a Problem for a range that the storage does not have, a scale that is not positive, a zero point outside the range."""
    stored, low, high = ranged(storage, limits)
    offsets = tuple(zero_points or (0,) * len(scales))
    assert len(offsets) == len(scales)
    for scale in scales:  # of a network there are tens of thousands
        if not 0 < scale < math.inf:
            raise Problem(f"the scale of a quantized type must be positive and finite, it is {scale}", kind="type")
    for offset in offsets:
        if not low <= offset <= high:
            raise Problem(f"the zero point {offset} is outside the storage's range of {low} to {high}", kind="type")
    numbers = ",".join([f"{real(s)}:{z}" if z else real(s) for s, z in zip(scales, offsets)])
    parameters = f", {numbers}" if axis is None else f":{axis}, {{{numbers}}}"
    name = f"!quant.uniform<{storage_text(storage, low, high)}:{expressed}{parameters}>"
    return Quantized(name, stored.bits, stored.kind, stored.storage, stored, low, high, expressed, tuple(scales), offsets, axis)


def any_quantized(storage: str, expressed: ElementType | None = None, limits: tuple[int, int] | None = None) -> Quantized:
    """`!quant.any`: a storage type, its parameters unknown."""
    stored, low, high = ranged(storage, limits)
    name = f"!quant.any<{storage_text(storage, low, high)}{f':{expressed}' if expressed else ''}>"
    return Quantized(name, stored.bits, stored.kind, stored.storage, stored, low, high, expressed)


def calibrated(expressed: ElementType, low: float, high: float) -> Quantized:
    """`!quant.calibrated`: floats, of which it is known in what range they are."""
    require(-math.inf < low < high < math.inf, f"the range of a calibrated type, {low} to {high}, is empty")
    name = f"!quant.calibrated<{expressed}<{real(low)}:{real(high)}>>"
    return Quantized(name, expressed.bits, expressed.kind, expressed.storage, expressed, low, high, expressed)


def ranged(storage: str, limits: tuple[int, int] | None) -> tuple[ElementType, int, int]:
    """A storage type and the part of its range that is used."""
    stored = STORAGE[storage]
    least, greatest = full_range(storage)
    low, high = limits or (least, greatest)
    require(least <= low < high <= greatest, f"{low} to {high} is no part of the range of {storage}, {least} to {greatest}")
    return stored, low, high


def full_range(storage: str) -> tuple[int, int]:
    """All values that the bits of the storage type hold: TOSA's own i4 ends at -7, a quantized one does not."""
    bits = STORAGE[storage].bits
    return (0, (1 << bits) - 1) if storage.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def storage_text(storage: str, low: int, high: int) -> str:
    return storage if (low, high) == full_range(storage) else f"{storage}<{low}:{high}>"


def real(x: float) -> str:
    """The shortest decimal number that reads back, with the point that MLIR wants."""
    text = repr(float(x))
    if "." in text:
        return text
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0{mark}{exponent}"


def quantization_of(element: ElementType | None) -> Quantization | None:
    """What stored integers of that type stand for, as the runtime knows it; None where the type does not say it, or
    with a scale that is no float32."""
    if not isinstance(element, Quantized) or not all(LEAST_F32 <= s <= GREATEST_F32 for s in element.scales or (0,)):
        return None
    return Quantization(element.scales, element.zero_points, element.axis, element.minimum, element.maximum)


# ---- storage -----------------------------------------------------------------------------------------------------
def is_quantized(type: Any) -> bool:
    """True if it is a tensor of a quantized type."""
    return isinstance(type, TensorType) and isinstance(type.element, Quantized)


def storage_of(element: ElementType) -> ElementType:
    """The type that elements are stored in."""
    return element.stored if isinstance(element, Quantized) else element


def storage_type(type: Any) -> Any:
    """A type with its elements as they are stored; what is no quantized tensor is the same object."""
    return type.with_element(storage_of(type.element)) if is_quantized(type) else type


def same_element(a: ElementType, b: ElementType) -> bool:
    """True if two element types are equal, one of them perhaps in a form that says nothing of its quantization."""
    return a == b or (storage_of(a) == storage_of(b) and not (isinstance(a, Quantized) and isinstance(b, Quantized)))


def check_quantized(type: TensorType, what: str) -> None:
    """Per-axis parameters fit the tensor: the axis exists, and there are as many as its extent."""
    element = type.element
    if not isinstance(element, Quantized) or element.axis is None or type.shape is None:
        return
    require(element.axis < type.rank, f"{what} is {type}, quantized along axis {element.axis}, which it does not have")
    extent, count = type.shape[element.axis], len(element.scales)
    if extent is not None and extent != count:
        raise Problem(f"{what} is {type}, with {count} scales for the {extent} indices along axis {element.axis}", kind="type")
