"""LLVM's spelling of the loop IR's types and constants, and arithmetic on vectors of them.

Half floats (float16, bfloat16, float8_* and smaller) are integers of their size here: only conversions decode them, so that no
target gets a type for which it must call a library.
"""
from __future__ import annotations

import functools
import re
import struct

import numpy as np

from ....runtime.records import dataclass
from ...elements.expression import is_float
from ...loops.ir import Type
from ...machine_code.llvm_writer import Writer

SCALARS = {"bool": "i1", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
           "int64": "i64", "uint64": "i64", "float32": "float", "float64": "double", "float16": "i16",
           "bfloat16": "i16", "float8_e4m3fn": "i8", "float8_e5m2": "i8", "float8_e4m3fnuz": "i8",
           "float8_e5m2fnuz": "i8", "float8_e8m0fnu": "i8", "float6_e2m3fn": "i8", "float6_e3m2fn": "i8", "float4_e2m1fn": "i8"}
HALF = "half"
"""LLVM's name of the float16 that it computes with: the type of values inside one operation of the loop IR."""
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64}
SUFFIXES = {"i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "half": "f16", "float": "f32",
            "double": "f64"}
HALVES = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                    "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"})
KINDS = {d: "half" if d in HALVES else "bool" if d == "bool" else "float" if is_float(d) else
         "unsigned" if d.startswith("u") else "signed" for d in SCALARS}
SCALARS[HALF], KINDS[HALF] = HALF, "float"


def spelled(scalar: str, lanes: int) -> str:
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(scalar: str, lanes: int) -> str:
    """Return the type suffix of an overloaded intrinsic's name."""
    return SUFFIXES[scalar] if lanes == 1 else f"v{lanes}{SUFFIXES[scalar]}"


@functools.cache
def llvm_type(type: Type) -> str:
    return spelled(SCALARS[type.dtype], type.lanes)


@functools.lru_cache(maxsize=4096)
def constant(scalar: str, lanes: int, value: float | int) -> str:
    """Return a number as an operand, a splat for a vector. Floats are written by their bits, so that none is rounded on the
    way."""
    if scalar in ("float", "double"):
        with np.errstate(over="ignore"):
            number = float(np.float32(value)) if scalar == "float" else float(value)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    else:
        text = str(int(value))
    return text if lanes == 1 else f"splat ({scalar} {text})"


def literal(value: float | int, type: Type) -> str:
    """Return a Literal of the loop IR."""
    match KINDS[type.dtype]:
        case "half":
            value = half_bits(value, type.dtype)
        case "bool":
            value = int(bool(value))
        case "float":
            return constant(SCALARS[type.dtype], type.lanes, float(value)) if value else zero(value, type)
    return constant(SCALARS[type.dtype], type.lanes, int(value))


def zero(value: float | int, type: Type) -> str:
    """Return a zero of either sign: 0.0 and -0.0 are equal, and would share a cache entry of `constant`."""
    text = "-0.0" if struct.pack("<d", value)[7] else "0.0"
    return text if type.lanes == 1 else f"splat ({SCALARS[type.dtype]} {text})"


def half_bits(value: float | int, dtype: str) -> int:
    if dtype != "float16":
        import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
    with np.errstate(over="ignore"):
        one = np.asarray(value, np.float32).astype(dtype)
    return int(one.view(f"u{one.dtype.itemsize}"))


@functools.lru_cache(maxsize=1024)
def lane_numbers(lanes: tuple[int, ...]) -> str:
    """Return the lane mask of a shuffle."""
    return f"<{len(lanes)} x i32> <{', '.join([f'i32 {i}' for i in lanes])}>"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Instructions over `lanes` lanes, for operations of several instructions. A Python number is a constant operand."""
    writer: Writer
    lanes: int

    def type(self, scalar: str) -> str:
        return spelled(scalar, self.lanes)

    def value(self, scalar: str, x: str | float | int) -> str:
        return x if isinstance(x, str) else constant(scalar, self.lanes, x)

    def op(self, name: str, scalar: str, a: str | float, b: str | float) -> str:
        """Write a binary instruction or a comparison."""
        return self.writer.put(f"{name} {self.type(scalar)} {self.value(scalar, a)}, {self.value(scalar, b)}")

    def select(self, condition: str, scalar: str, yes: str | float, no: str | float) -> str:
        t = self.type(scalar)
        return self.writer.put(f"select {self.type('i1')} {condition}, {t} {self.value(scalar, yes)}, "
                               f"{t} {self.value(scalar, no)}")

    def cast(self, name: str, source: str, x: str, result: str) -> str:
        """Write a conversion instruction; nothing if the types are the same."""
        return x if source == result else self.writer.put(f"{name} {self.type(source)} {x} to {self.type(result)}")

    def bits(self, source: str, x: str, result: str) -> str:
        return self.cast("bitcast", source, x, result)

    def call(self, name: str, scalar: str, *args: str | float) -> str:
        """Call an overloaded intrinsic whose operands and result have one type."""
        t = self.type(scalar)
        return self.writer.intrinsic(f"llvm.{name}.{suffix(scalar, self.lanes)}", t,
                                [(t, self.value(scalar, a)) for a in args])

    def leading_zeros(self, scalar: str, x: str) -> str:
        """Count leading zeros; for 0, all bits."""
        t = self.type(scalar)
        return self.writer.intrinsic(f"llvm.ctlz.{suffix(scalar, self.lanes)}", t, [(t, x), ("i1", "false")])

    def freeze(self, scalar: str, x: str) -> str:
        """Freeze x to one fixed value if it has none (a shift too far, a float too large)."""
        return self.writer.put(f"freeze {self.type(scalar)} {x}")


def subvector(writer: Writer, scalar: str, lanes: int, x: str, first: int, count: int) -> str:
    """Return `count` consecutive lanes of a vector, from lane `first` on."""
    if count == lanes or not x:
        return x
    t = spelled(scalar, lanes)
    if count == 1:
        return writer.put(f"extractelement {t} {x}, i32 {first}")
    numbers = ", ".join([f"i32 {first + i}" for i in range(count)])
    return writer.put(f"shufflevector {t} {x}, {t} poison, <{count} x i32> <{numbers}>")


def resized(writer: Writer, x: str, lanes: int, wanted: int) -> str:
    """Return the first lanes of a vector of bytes; additional lanes are undefined."""
    t = spelled("i8", lanes)
    if lanes == 1:
        return writer.put(f"insertelement {spelled('i8', wanted)} poison, i8 {x}, i32 0")
    if wanted == 1:
        return writer.put(f"extractelement {t} {x}, i32 0")
    numbers = ", ".join(f"i32 {i if i < lanes else 0}" for i in range(wanted))
    return writer.put(f"shufflevector {t} {x}, {t} poison, <{wanted} x i32> <{numbers}>")


SPLAT = re.compile(r"splat \(i\d+ (-?\d+)\)")
"""Pattern of a splat vector of one integer."""


def splat_number(value: str) -> int | None:
    """Return the integer that a vector has in all lanes, if it is a constant splat; else None."""
    found = SPLAT.fullmatch(value)
    return int(found[1]) if found else None
