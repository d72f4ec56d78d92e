"""Casts between element types. Small floats are split and composed with 32-bit integer instructions, except
where the target has instructions for float16: an LLVM conversion would become a library call elsewhere.
"""
from __future__ import annotations

import numpy as np

from ....runtime.records import dataclass
from ...graph.types import ITEM_SIZES
from ...machine_code.llvm_writer import data, numbers
from ...target.target import Target
from .llvm_text import BITS, KINDS, SCALARS, Arithmetic

INFINITY = 0x7F800000
"""Bits of infinity in float32."""


@dataclass(frozen=True, slots=True)
class Format:
    """A small float: sign, exponent, mantissa. Without infinities its only NaN is the largest code; a `finite` format has no
    NaN either, and saturates to its largest number."""
    bits: int
    mantissa: int
    bias: int
    infinities: bool = True
    finite: bool = False

    @property
    def magnitude(self) -> int:
        """Mask of the bits below the sign."""
        return (1 << (self.bits - 1)) - 1

    @property
    def above(self) -> int:
        """Code of values that are too large: infinity, or the NaN, or the largest number."""
        return self.magnitude >> self.mantissa << self.mantissa if self.infinities else self.magnitude

    @property
    def storage(self) -> str:
        """Integer type that holds a code."""
        return "i16" if self.bits == 16 else "i8"


FORMATS = {"float16": Format(16, 10, 15), "bfloat16": Format(16, 7, 127), "float8_e5m2": Format(8, 2, 15),
           "float8_e4m3fn": Format(8, 3, 7, infinities=False),
           "float6_e2m3fn": Format(6, 3, 1, infinities=False, finite=True),
           "float6_e3m2fn": Format(6, 2, 3, infinities=False, finite=True),
           "float4_e2m1fn": Format(4, 1, 1, infinities=False, finite=True)}
SCALE = "float8_e8m0fnu"
"""Powers of two from 2^-127 on, by their exponent alone; 255 is NaN."""


def convert(a: Arithmetic, target: Target, x: str, source: str, result: str) -> str:
    """Return x, of dtype `source`, as a `result`: rounded to nearest even between floats, towards 0 from a float to an integer
    (some value if it does not fit), and truncated between integers."""
    if source == result:
        return x
    if KINDS[source] == "half":
        return convert(a, target, decode(a, target, x, source), "float32", result)
    if KINDS[result] == "half":
        single = narrow_to_odd(a, x) if source == "float64" else convert(a, target, x, source, "float32")
        return encode(a, target, single, result)
    if a.lanes > 1 and "float64" in (source, result) and target.widest_element < ITEM_SIZES["float64"]:
        return lane_by_lane(a, target, x, source, result)
    match SCALARS[source], SCALARS[result]:
        case "i64", ("float" | "double") if not target.has_int64:
            return from_long(a, x, source, result)
        case ("float" | "double"), "i64" if not target.has_int64:
            return to_long(a, x, source, result)
    return number(a, x, source, result)


def lane_by_lane(a: Arithmetic, target: Target, x: str, source: str, result: str) -> str:
    """Convert each lane alone: for vectors wider than a register, LLVM would convert 64-bit integers by a library call."""
    one, total = Arithmetic(a.writer, 1), "poison"
    for i in range(a.lanes):
        lane = a.writer.put(f"extractelement {a.type(SCALARS[source])} {x}, i32 {i}")
        lane = convert(one, target, lane, source, result)
        total = a.writer.put(f"insertelement {a.type(SCALARS[result])} {total}, {SCALARS[result]} {lane}, i32 {i}")
    return total


def number(a: Arithmetic, x: str, source: str, result: str) -> str:
    """Convert between bool, integers, float32 and float64."""
    s, r = SCALARS[source], SCALARS[result]
    match KINDS[source], KINDS[result]:
        case "float", "bool":
            return a.op("fcmp une", s, x, 0.0)
        case _, "bool":
            return a.op("icmp ne", s, x, 0)
        case "float", "float":
            return a.cast("fpext" if r == "double" else "fptrunc", s, x, r)
        case "float", kind:
            return a.freeze(r, a.cast("fptosi" if kind == "signed" else "fptoui", s, x, r))
        case kind, "float":
            return a.cast("sitofp" if kind == "signed" else "uitofp", s, x, r)
        case kind, _:
            return a.cast("trunc" if BITS[s] > BITS[r] else "sext" if kind == "signed" else "zext", s, x, r)


def decode(a: Arithmetic, target: Target, x: str, dtype: str) -> str:
    """Return a small float as a float32, exactly."""
    if dtype == SCALE:
        return decode_scale(a, x)
    f = FORMATS[dtype]
    if dtype == "float8_e5m2" and target.has_float16:  # the upper half of a float16
        x, dtype = a.op("shl", "i16", a.cast("zext", "i8", x, "i16"), 8), "float16"
    if dtype == "float16" and target.has_float16:
        return a.cast("fpext", "half", a.bits("i16", x, "half"), "float")
    if a.lanes == 1 and f.storage == "i8":
        return looked_up(a, x, dtype)
    code = a.cast("zext", f.storage, x, "i32")
    if dtype == "bfloat16":
        return a.bits("i32", a.op("shl", "i32", code, 16), "float")
    place = 23 - f.mantissa
    magnitude = a.op("shl", "i32", a.op("and", "i32", code, f.magnitude), place)
    scaled = a.op("fmul", "float", a.bits("i32", magnitude, "float"), 2.0 ** (127 - f.bias))  # subnormals become normal
    bits = a.bits("float", scaled, "i32")
    if not f.finite:
        special = a.op("icmp uge", "i32", magnitude, f.above << place)
        bits = a.select(special, "i32", a.op("or", "i32", magnitude, INFINITY), bits)
    sign = a.op("shl", "i32", a.op("and", "i32", code, 1 << (f.bits - 1)), 32 - f.bits)
    return a.bits("i32", a.op("or", "i32", bits, sign), "float")


def looked_up(a: Arithmetic, x: str, dtype: str) -> str:
    """Return one small float as a float32, from a table of all of them: three instructions in place of a dozen."""
    name = f"tosaic.{dtype}"
    if name not in a.writer.declared:
        codes = (bits_of(FORMATS[dtype], code) for code in range(256))
        a.writer.declared[name] = data(name, "internal unnamed_addr constant", *numbers(codes))
    place = a.writer.put(f"zext i8 {x} to i32")
    place = a.writer.put(f"getelementptr float, ptr @{name}, i32 {place}")
    return a.writer.put(f"load float, ptr {place}, align 4")


def bits_of(f: Format, code: int) -> int:
    """Return the float32 bits of a code's value."""
    sign, magnitude, place = code >> (f.bits - 1) & 1, code & f.magnitude, 23 - f.mantissa
    if magnitude >= f.above and not f.finite:
        bits = magnitude << place | INFINITY
    else:
        exponent, mantissa = max(magnitude >> f.mantissa, 1), magnitude
        if magnitude >> f.mantissa:
            mantissa = magnitude & (1 << f.mantissa) - 1 | 1 << f.mantissa
        bits = int(np.float32(mantissa * 2.0 ** (exponent - f.bias - f.mantissa)).view(np.int32))
    return bits | sign << 31


def encode(a: Arithmetic, target: Target, x: str, dtype: str) -> str:
    """Return a float32 as a small float, rounded to nearest even; values that are too large become infinity, or NaN if there is
    none, or the largest number if there is no NaN (and a NaN then becomes zero)."""
    if dtype == "float16" and target.has_float16:
        return a.bits("half", a.cast("fptrunc", "float", x, "half"), "i16")
    bits = a.bits("float", x, "i32")
    if dtype == SCALE:
        return a.cast("trunc", "i32", encode_scale(a, bits), "i8")
    f = FORMATS[dtype]
    code = encode_brain(a, bits) if dtype == "bfloat16" else encode_small(a, bits, f)
    return a.cast("trunc", "i32", code, f.storage)


def decode_scale(a: Arithmetic, x: str) -> str:
    """Return a power of two as a float32: its exponent shifted into place, except for NaN and the subnormal 2^-127."""
    code = a.cast("zext", "i8", x, "i32")
    bits = a.select(a.op("icmp eq", "i32", code, 0), "i32", 1 << 22, a.op("shl", "i32", code, 23))
    quiet = a.op("icmp eq", "i32", code, 255)
    return a.bits("i32", a.select(quiet, "i32", INFINITY | 1 << 22, bits), "float")


def encode_scale(a: Arithmetic, bits: str) -> str:
    """Return the nearest power of two, on a tie the larger; NaN for values that are not positive or are too large. Below 2^-126
    round up to the next power, as ml_dtypes does."""
    normal = a.op("lshr", "i32", a.op("add", "i32", bits, 1 << 22), 23)
    subnormal = a.cast("zext", "i1", a.op("icmp ugt", "i32", bits, 1 << 22), "i32")
    code = a.select(a.op("icmp ult", "i32", bits, 1 << 23), "i32", subnormal, normal)
    return a.select(a.op("icmp sle", "i32", bits, 0), "i32", 255, a.call("umin", "i32", code, 255))


def encode_brain(a: Arithmetic, bits: str) -> str:
    """Return the upper half of a float32 after rounding; a NaN is made quiet, because rounding could turn it into infinity."""
    upper = a.op("lshr", "i32", bits, 16)
    odd = a.op("and", "i32", upper, 1)
    rounded = a.op("lshr", "i32", a.op("add", "i32", a.op("add", "i32", bits, 0x7FFF), odd), 16)
    nan = a.op("icmp ugt", "i32", a.op("and", "i32", bits, 0x7FFFFFFF), INFINITY)
    return a.select(nan, "i32", a.op("or", "i32", upper, 0x40), rounded)


def encode_small(a: Arithmetic, bits: str, f: Format) -> str:
    """Round normal results as integers, and subnormal ones by a float addition that leaves their bits at the end."""
    drop, rebias = 23 - f.mantissa, 127 - f.bias
    magnitude = a.op("and", "i32", bits, 0x7FFFFFFF)
    odd = a.op("and", "i32", a.op("lshr", "i32", magnitude, drop), 1)
    half = a.op("add", "i32", a.op("add", "i32", magnitude, (1 << (drop - 1)) - 1 - (rebias << 23)), odd)
    normal = a.op("lshr", "i32", half, drop)
    unit = 2.0 ** (1 - f.bias + drop)  # a float32 of this size has steps of the smallest subnormal
    shifted = a.bits("float", a.op("fadd", "float", a.bits("i32", magnitude, "float"), unit), "i32")
    subnormal = a.op("sub", "i32", shifted, int(np.float32(unit).view(np.int32)))
    small = a.op("icmp ult", "i32", magnitude, (rebias + 1) << 23)
    code = a.call("umin", "i32", a.select(small, "i32", subnormal, normal), f.above)
    if f.infinities or f.finite:
        nan = a.op("icmp ugt", "i32", magnitude, INFINITY)
        code = a.select(nan, "i32", 0 if f.finite else f.above | 1 << (f.mantissa - 1), code)
    sign = a.op("and", "i32", a.op("lshr", "i32", bits, 32 - f.bits), 1 << (f.bits - 1))
    return a.op("or", "i32", code, sign)


def narrow_to_odd(a: Arithmetic, x: str) -> str:
    """Round a float64 to odd as a float32 (last bit set if inexact): rounding the result again is then a single rounding."""
    near = a.cast("fptrunc", "double", x, "float")
    back = a.cast("fpext", "float", near, "double")
    code = a.bits("float", near, "i32")
    beyond = a.op("fcmp ogt", "double", a.call("fabs", "double", back), a.call("fabs", "double", x))
    cut = a.op("sub", "i32", code, a.cast("zext", "i1", beyond, "i32"))
    odd = a.op("or", "i32", cut, 1)
    return a.bits("i32", a.select(a.op("fcmp one", "double", back, x), "i32", odd, code), "float")


# ---- 64-bit integers on 32-bit processors, where an instruction for it is a library call -----------------------------
def from_long(a: Arithmetic, x: str, source: str, result: str) -> str:
    """Return a 64-bit integer as a float: its upper bits are the mantissa, and the others round it."""
    scalar, bias, drop = ("float", 127, 40) if result == "float32" else ("double", 1023, 11)
    mantissa, width = 63 - drop, BITS[scalar]
    sign = a.op("and", "i64", x, -1 << 63) if KINDS[source] == "signed" else "0"
    size = a.select(a.op("icmp slt", "i64", x, 0), "i64", a.op("sub", "i64", 0, x), x) if sign != "0" else x
    zeros = a.leading_zeros("i64", size)
    top = a.op("shl", "i64", size, a.op("and", "i64", zeros, 63))
    odd = a.op("and", "i64", a.op("lshr", "i64", top, drop), 1)
    below = a.op("and", "i64", top, (1 << drop) - 1)
    up = a.op("icmp ugt", "i64", a.op("add", "i64", below, odd), 1 << (drop - 1))  # above a half, or a half and odd
    exponent = a.op("shl", "i64", a.op("sub", "i64", bias + 62, zeros), mantissa)  # the leading bit adds one more
    code = a.op("add", "i64", exponent, a.op("lshr", "i64", top, drop))
    code = a.op("add", "i64", code, a.cast("zext", "i1", up, "i64"))
    code = a.select(a.op("icmp eq", "i64", size, 0), "i64", 0, code)
    if sign != "0":
        code = a.op("or", "i64", code, a.op("lshr", "i64", sign, 64 - width))
    return a.bits(f"i{width}", a.cast("trunc", "i64", code, f"i{width}"), scalar)


def to_long(a: Arithmetic, x: str, source: str, result: str) -> str:
    """Return a float as a 64-bit integer, towards 0: its mantissa, shifted by its exponent."""
    scalar, bias, mantissa = ("float", 127, 23) if source == "float32" else ("double", 1023, 52)
    width = BITS[scalar]
    code = a.cast("zext", f"i{width}", a.bits(scalar, x, f"i{width}"), "i64")
    power = a.op("and", "i64", a.op("lshr", "i64", code, mantissa), (1 << (width - 1 - mantissa)) - 1)
    whole = a.op("or", "i64", a.op("and", "i64", code, (1 << mantissa) - 1), 1 << mantissa)
    left = a.op("sub", "i64", power, bias + mantissa)
    larger = a.op("shl", "i64", whole, a.op("and", "i64", left, 63))
    smaller = a.op("lshr", "i64", whole, a.op("and", "i64", a.op("sub", "i64", 0, left), 63))
    size = a.select(a.op("icmp slt", "i64", left, 0), "i64", smaller, larger)
    size = a.select(a.op("icmp ult", "i64", power, bias), "i64", 0, size)
    if KINDS[result] == "unsigned":
        return size
    negative = a.op("icmp ne", "i64", a.op("lshr", "i64", code, width - 1), 0)
    return a.select(negative, "i64", a.op("sub", "i64", 0, size), size)
