"""Quantized element types of MLIR's quant dialect: integers (or floats) in storage, and the real numbers that they represent.

    !quant.uniform<i8:f32, 0.01:-3>                       real = 0.01 * (stored - -3)
    !quant.uniform<i8<-127:127>:f32:0, {0.1,0.2:1}>       a scale and a zero point for each index along axis 0
    !quant.any<i8<-8:7>>                                  stored like this, parameters not given
    !quant.calibrated<f32<-1.0:2.5>>                      floats that were seen in this range

TOSA's operators hold scales and zero points themselves. So type rules and code treat a tensor of a quantized type as one of
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
"""Least and greatest positive number of float32."""


@dataclass(frozen=True, slots=True)
class Quantized(ElementType):
    """A quantized element type. It counts as its storage type in bits, kind and NumPy dtype.

    `stored` is that storage type, with the used range `low` to `high`; `expressed` the type of the real numbers, if it is
    given. `scales` and `zero_points` have one entry, or one for each index along `axis`; none if they are not given.
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
    """Return `!quant.uniform`: real = scale * (stored - zero_point), one pair for all, or one for each index along `axis`.
    Raises a Problem for a range that the storage does not have, a scale that is not positive, a zero point outside the range.
    """
    stored, low, high = ranged(storage, limits)
    offsets = tuple(zero_points or (0,) * len(scales))
    assert len(offsets) == len(scales)
    for scale in scales:  # a network has tens of thousands
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
    """Return `!quant.any`: a storage type, its parameters unknown."""
    stored, low, high = ranged(storage, limits)
    name = f"!quant.any<{storage_text(storage, low, high)}{f':{expressed}' if expressed else ''}>"
    return Quantized(name, stored.bits, stored.kind, stored.storage, stored, low, high, expressed)


def calibrated(expressed: ElementType, low: float, high: float) -> Quantized:
    """Return `!quant.calibrated`: floats in a known range."""
    require(-math.inf < low < high < math.inf, f"the range of a calibrated type, {low} to {high}, is empty")
    name = f"!quant.calibrated<{expressed}<{real(low)}:{real(high)}>>"
    return Quantized(name, expressed.bits, expressed.kind, expressed.storage, expressed, low, high, expressed)


def ranged(storage: str, limits: tuple[int, int] | None) -> tuple[ElementType, int, int]:
    """Return a storage type and the part of its range that is used."""
    stored = STORAGE[storage]
    least, greatest = full_range(storage)
    low, high = limits or (least, greatest)
    require(least <= low < high <= greatest, f"{low} to {high} is no part of the range of {storage}, {least} to {greatest}")
    return stored, low, high


def full_range(storage: str) -> tuple[int, int]:
    """Return the range of the bits of the storage type: TOSA's own i4 ends at -7, a quantized one does not."""
    bits = STORAGE[storage].bits
    return (0, (1 << bits) - 1) if storage.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def storage_text(storage: str, low: int, high: int) -> str:
    return storage if (low, high) == full_range(storage) else f"{storage}<{low}:{high}>"


def real(x: float) -> str:
    """Return the shortest decimal number that reads back, with the point that MLIR requires."""
    text = repr(float(x))
    if "." in text:
        return text
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0{mark}{exponent}"


def quantization_of(element: ElementType | None) -> Quantization | None:
    """Return the runtime's form of the quantization of a type; None if the type does not define it, or has a scale that is
    no float32."""
    if not isinstance(element, Quantized) or not all(LEAST_F32 <= s <= GREATEST_F32 for s in element.scales or (0,)):
        return None
    return Quantization(element.scales, element.zero_points, element.axis, element.minimum, element.maximum)


# ---- storage -----------------------------------------------------------------------------------------------------
def is_quantized(type: Any) -> bool:
    """True if the type is a tensor of a quantized type."""
    return isinstance(type, TensorType) and isinstance(type.element, Quantized)


def storage_of(element: ElementType) -> ElementType:
    """Return the type in which elements are stored."""
    return element.stored if isinstance(element, Quantized) else element


def storage_type(type: Any) -> Any:
    """Return a type with its elements as they are stored; any type but a quantized tensor is returned unchanged."""
    return type.with_element(storage_of(type.element)) if is_quantized(type) else type


def same_element(a: ElementType, b: ElementType) -> bool:
    """True if two element types are equal, where one of them may be in a form without its quantization."""
    return a == b or (storage_of(a) == storage_of(b) and not (isinstance(a, Quantized) and isinstance(b, Quantized)))


def check_quantized(type: TensorType, what: str) -> None:
    """Check that per-axis parameters fit the tensor: the axis exists, and there are as many as its extent."""
    element = type.element
    if not isinstance(element, Quantized) or element.axis is None or type.shape is None:
        return
    require(element.axis < type.rank, f"{what} is {type}, quantized along axis {element.axis}, which it does not have")
    extent, count = type.shape[element.axis], len(element.scales)
    if extent is not None and extent != count:
        raise Problem(f"{what} is {type}, with {count} scales for the {extent} indices along axis {element.axis}", kind="type")
