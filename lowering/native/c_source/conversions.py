"""Casts between element types in C. Small floats are split and composed with 32-bit integers (`llvm.conversions` has their
formats, and does the same): no compiler need know such types.
"""
from __future__ import annotations

import numpy as np

from ..llvm.conversions import FORMATS, INFINITY, SCALE, Format
from ..llvm.llvm_text import KINDS
from .c_text import BITS, SCALARS, SHORT
from .helpers import Helpers


def convert(h: Helpers, x: str, source: str, result: str) -> str:
    """The value of x, of dtype `source`, as a `result`: rounded to nearest even between floats, towards 0 from a float to an
    integer (some value where it does not fit), and cut to the low bits between integers."""
    if source == result:
        return x
    if KINDS[source] == "half":
        return convert(h, f"{decoder(h, source)}({x})", "float32", result)
    if KINDS[result] == "half":
        single = f"{odd(h)}({x})" if source == "float64" else convert(h, x, source, "float32")
        return f"{encoder(h, result)}({single})"
    match KINDS[source], KINDS[result]:
        case "float", "bool":
            return f"({x} != 0)"
        case _, "bool":
            return f"({x} != 0)"
        case "float", ("signed" | "unsigned"):
            return f"{to_integer(h, source, result)}({x})"
    return f"({SCALARS[result]}){x}"


def to_integer(h: Helpers, source: str, result: str) -> str:
    """A float as an integer; 0 where that would not fit."""
    bits, single = BITS[result], "f" if source == "float32" else ""
    high = f"{2.0 ** (bits - (KINDS[result] == 'signed'))}{single}"
    mantissa = 24 if source == "float32" else 53
    low = "-1.0" + single if KINDS[result] == "unsigned" else f"-{2.0 ** (bits - 1) + (1 if bits < mantissa else 0)}{single}"
    at_least = ">=" if KINDS[result] == "signed" and bits >= mantissa else ">"
    name = f"{SHORT[source]}_to_{SHORT[result]}"
    return h.function(name, SCALARS[result], f"{SCALARS[source]} x",
                      f"return x {at_least} {low} && x < {high} ? ({SCALARS[result]})x : 0;")


# ---- small floats ----------------------------------------------------------------------------------------------------
def decoder(h: Helpers, dtype: str) -> str:
    """The function that gives a small float as a float32, exactly."""
    name, t, to = f"{SHORT[dtype]}_to_f32", SCALARS[dtype], h.bits("uint32", "float32")
    if dtype == SCALE:
        return h.function(name, "float", f"{t} x", "const uint32_t code = x;",
                          f"return {to}(code == 0 ? 0x400000u : code == 255 ? 0x7fc00000u : code << 23);")
    if dtype == "bfloat16":
        return h.function(name, "float", f"{t} x", f"return {to}((uint32_t)x << 16);")
    f = FORMATS[dtype]
    of, place, scale = h.bits("float32", "uint32"), 23 - f.mantissa, f"{2.0 ** (127 - f.bias)}f"
    special = [] if f.finite else [
        f"if (magnitude >= UINT32_C({f.above << place})) bits = magnitude | UINT32_C({INFINITY});"]
    body = [f"const uint32_t magnitude = ((uint32_t)x & {f.magnitude}u) << {place};",
            f"uint32_t bits = {of}({to}(magnitude) * {scale}); /* subnormal numbers become normal */", *special,
            f"return {to}(bits | ((uint32_t)x & {1 << (f.bits - 1)}u) << {32 - f.bits});"]
    return h.function(name, "float", f"{t} x", *(by_instruction(to, body) if dtype == "float16" else body))


def by_instruction(to: str, body: list[str]) -> list[str]:
    """A float16 as a float32 by the instruction that each Cortex-M with a unit for floats has; C has no name for it that all
    compilers know."""
    return ["#if defined(__GNUC__) && defined(__thumb__) && defined(__ARM_FP) && __ARM_ARCH_PROFILE == 'M'",
            f"float y = {to}(x);", '__asm__("vcvtb.f32.f16 %0, %0" : "+t"(y));', "return y;", "#else", *body, "#endif"]


def encoder(h: Helpers, dtype: str) -> str:
    """Return the function that rounds a float32 to a small float, to nearest even; values that are too large become infinity,
    or NaN if there is none, or the largest number if there is no NaN (and a NaN then becomes zero)."""
    name, t, of = f"f32_to_{SHORT[dtype]}", SCALARS[dtype], h.bits("float32", "uint32")
    if dtype == SCALE:
        body = scale_body()
    elif dtype == "bfloat16":
        body = ["if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* a NaN stays one */",
                "return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);"]
    else:
        body = small_body(h, of, FORMATS[dtype], t)
    return h.function(name, t, "float x", f"const uint32_t bits = {of}(x);", *body)


def scale_body() -> list[str]:
    """The nearest power of two, on a tie the larger; NaN for values that are not positive or are too large."""
    return ["uint32_t code;", "if (bits == 0 || bits > 0x7fffffffu) return 255;",
            "code = bits < 0x800000u ? (uint32_t)(bits > 0x400000u) : (bits + 0x400000u) >> 23;",
            "return (uint8_t)(code < 255 ? code : 255);"]


def small_body(h: Helpers, of: str, f: Format, t: str) -> list[str]:
    """Normal results are rounded as integers; subnormal ones by a float addition that leaves their bits at the end."""
    drop, rebias, to = 23 - f.mantissa, 127 - f.bias, h.bits("uint32", "float32")
    unit = 2.0 ** (1 - f.bias + drop)
    nudge = ((1 << (drop - 1)) - 1 - (rebias << 23)) & 0xFFFF_FFFF
    lines = ["const uint32_t magnitude = bits & 0x7fffffffu;", "uint32_t code;",
             f"if (magnitude < UINT32_C({(rebias + 1) << 23}))",
             f"    code = {of}({to}(magnitude) + {unit}f) - UINT32_C({int(np.float32(unit).view(np.int32))});", "else",
             f"    code = (magnitude + UINT32_C({nudge}) + (magnitude >> {drop} & 1u)) >> {drop};",
             f"if (code > {f.above}u) code = {f.above}u;"]
    if f.infinities or f.finite:
        nan = 0 if f.finite else f.above | 1 << (f.mantissa - 1)
        lines.append(f"if (magnitude > UINT32_C({INFINITY})) code = {nan}u;")
    return [*lines, f"return ({t})(code | (bits >> {32 - f.bits} & {1 << (f.bits - 1)}u));"]


def odd(h: Helpers) -> str:
    """A float64 as a float32 with the last bit set where it is not exact: rounding that again is rounding once."""
    of, to, size = h.bits("float32", "uint32"), h.bits("uint32", "float32"), h.absolute_float("float64")
    return h.function(
        "f64_to_odd_f32", "float", "double x", "const float near = (float)x;", "const double back = near;",
        f"uint32_t bits = {of}(near);", "if (!(back < x || back > x)) return near;",
        f"if ({size}(back) > {size}(x)) --bits;", f"return {to}(bits | 1u);")
