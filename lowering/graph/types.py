"""Types of the tensor graph: element types, tensors, shapes. Immutable; compared by value.

An `ElementType` says how MLIR spells it, how many bits the specification gives it, and which NumPy dtype stores it
(`i4` in an int8, `i48` in an int64, `i1` in a bool). Sizes are exact Python integers.
"""
from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...runtime.records import dataclass

Array = npt.NDArray[Any]
Kind = Literal["bool", "signed", "unsigned", "float", "index", "opaque", "block_scaled"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of one element. `name` is MLIR's spelling, `storage` the name of the NumPy dtype that holds a value."""
    name: str
    bits: int
    kind: Kind
    storage: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer, not bool."""
        return self.kind in ("signed", "unsigned")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype that stores it; bf16, fp8 and their like need `ml_dtypes`."""
        if self.storage not in NUMPY_NAMES:
            import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
        return np.dtype(self.storage)

    @property
    def itemsize(self) -> int:
        """Bytes of one stored element."""
        return 1 if self.kind == "bool" else ITEM_SIZES[self.storage]

    @property
    def minimum(self) -> int:
        """Least value of an integer type (i4: -7, as TOSA has it)."""
        if self.name == "i4":
            return -7
        return -(1 << (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def maximum(self) -> int:
        """Greatest value of an integer type."""
        return (1 << (self.bits - (self.kind == "signed"))) - 1


NUMPY_NAMES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
               "float64"}
ITEM_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4,
              "uint64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
              "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float6_e2m3fn": 1, "float6_e3m2fn": 1,
              "float4_e2m1fn": 1}

I1 = ElementType("i1", 1, "bool", "bool")
I2 = ElementType("i2", 2, "signed", "int8")
I4 = ElementType("i4", 4, "signed", "int8")
I8 = ElementType("i8", 8, "signed", "int8")
I16 = ElementType("i16", 16, "signed", "int16")
I32 = ElementType("i32", 32, "signed", "int32")
I48 = ElementType("i48", 48, "signed", "int64")
I64 = ElementType("i64", 64, "signed", "int64")
UI2 = ElementType("ui2", 2, "unsigned", "uint8")
UI4 = ElementType("ui4", 4, "unsigned", "uint8")
UI8 = ElementType("ui8", 8, "unsigned", "uint8")
UI16 = ElementType("ui16", 16, "unsigned", "uint16")
UI32 = ElementType("ui32", 32, "unsigned", "uint32")
UI64 = ElementType("ui64", 64, "unsigned", "uint64")
SI8 = ElementType("si8", 8, "signed", "int8")
SI16 = ElementType("si16", 16, "signed", "int16")
SI32 = ElementType("si32", 32, "signed", "int32")
SI64 = ElementType("si64", 64, "signed", "int64")
INDEX = ElementType("index", 64, "index", "int64")
F16 = ElementType("f16", 16, "float", "float16")
BF16 = ElementType("bf16", 16, "float", "bfloat16")
F32 = ElementType("f32", 32, "float", "float32")
F64 = ElementType("f64", 64, "float", "float64")
F8E4M3 = ElementType("f8E4M3FN", 8, "float", "float8_e4m3fn")
F8E5M2 = ElementType("f8E5M2", 8, "float", "float8_e5m2")
F8E4M3FNUZ = ElementType("f8E4M3FNUZ", 8, "float", "float8_e4m3fnuz")
F8E5M2FNUZ = ElementType("f8E5M2FNUZ", 8, "float", "float8_e5m2fnuz")
F8E8M0 = ElementType("f8E8M0FNU", 8, "float", "float8_e8m0fnu")
F6E2M3 = ElementType("f6E2M3FN", 6, "float", "float6_e2m3fn")
F6E3M2 = ElementType("f6E3M2FN", 6, "float", "float6_e3m2fn")
F4E2M1 = ElementType("f4E2M1FN", 4, "float", "float4_e2m1fn")
MXINT8 = ElementType("!tosa.mxint8", 8, "float", "int8")
"""A signed byte that counts 64ths: only a value inside block-scaled tensors, which no arithmetic takes as it is."""


@dataclass(frozen=True, slots=True)
class BlockScaled(ElementType):
    """A composite type (TOSA 1.1): numbers of type `value`, of which each run of `block` along the last axis shares one
    factor of type `scale`. As an array for the reference: one record of value and scale for each element (`dtype`)."""
    value: ElementType
    scale: ElementType
    block: int

    def __str__(self) -> str:
        return self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([("value", self.value.dtype), ("scale", self.scale.dtype)])

    @property
    def itemsize(self) -> int:
        """Bytes of one element, its share of the scale not counted."""
        return 1


def block_scaled(value: ElementType) -> BlockScaled:
    """The composite type with 32 values of that type to a scale."""
    return BlockScaled(f"!tosa.block_scaled<BLOCK_SHAPE_32:{F8E8M0}:{value}>", value.bits, "block_scaled", "block_scaled",
                       value, F8E8M0, 32)


ELEMENT_TYPES: dict[str, ElementType] = {t.name: t for t in (
    I1, I2, I4, I8, I16, I32, I48, I64, UI2, UI4, UI8, UI16, UI32, UI64, SI8, SI16, SI32, SI64, INDEX, F16, BF16, F32, F64,
    F8E4M3, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0, F6E2M3, F6E3M2, F4E2M1, MXINT8)}
ELEMENT_TYPES |= {t.name: t for t in map(block_scaled, (F8E4M3, F8E5M2, F6E3M2, F6E2M3, F4E2M1, MXINT8))}


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: `shape` is None where the rank is not known, an extent None where it is not (`?`)."""
    shape: tuple[int | None, ...] | None
    element: ElementType

    def __str__(self) -> str:
        if self.shape is None:
            return f"tensor<*x{self.element}>"
        return "tensor<" + "".join(f"{'?' if n is None else n}x" for n in self.shape) + f"{self.element}>"

    @property
    def is_static(self) -> bool:
        """True if the rank and all extents are known."""
        return self.shape is not None and None not in self.shape

    @property
    def dims(self) -> tuple[int, ...]:
        """The extents of a static shape."""
        assert self.shape is not None and self.is_static, f"{self} is not static"
        return self.shape  # type: ignore[return-value]

    @property
    def rank(self) -> int:
        assert self.shape is not None, f"{self} has no rank"
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        return self.size * self.element.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major strides, in elements."""
        return tuple(math.prod(self.dims[d + 1:]) for d in range(self.rank))

    def with_dim(self, axis: int, extent: int) -> TensorType:
        """The same with another extent along `axis`."""
        return TensorType((*self.dims[:axis], extent, *self.dims[axis + 1:]), self.element)

    def with_element(self, element: ElementType) -> TensorType:
        return TensorType(self.shape, element)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(shape, self.element)


@dataclass(frozen=True, slots=True)
class ShapeType:
    """A list of `rank` extents that is known when compiling: `!tosa.shape<rank>`."""
    rank: int

    def __str__(self) -> str:
        return f"!tosa.shape<{self.rank}>"


@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A type that is kept as its text (`!tf_type.resource`, `!quant...`, `none`)."""
    text: str

    def __str__(self) -> str:
        return self.text


Type = TensorType | ShapeType | OpaqueType


def tensor_type(array: Array, element: ElementType | None = None) -> TensorType:
    """The type of a NumPy array; `element` where its dtype does not say which (i4, i48)."""
    found = element or BY_STORAGE[array.dtype.name]
    return TensorType(array.shape, found)


BY_STORAGE: dict[str, ElementType] = {t.storage: t for t in (
    I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64, F16, BF16, F32, F64, F8E4M3, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0, F6E2M3,
    F6E3M2, F4E2M1)}
