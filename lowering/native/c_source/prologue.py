"""The prologue of a C source file: headers, its assumptions beyond C99, and the functions that its kernels call.

The file assumes two's complement integers whose conversions keep the low bits, arithmetic right shifts of negative integers,
little-endian memory, and IEEE 754 floats that are computed in their own type; the compiler checks all of that. Products and
sums must not be fused: ISO C lets a compiler fuse them, and the pragmas forbid it.
"""
from __future__ import annotations

import re

from .helpers import Helpers

NO_FUSING = """\
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__FP_FAST_FMA) || defined(__FP_FAST_FMAF)
#pragma GCC optimize ("fp-contract=off")
#endif
#ifdef __FAST_MATH__
#error "-ffast-math changes results: compile this file without it"
#endif"""

ALIGNED_AS = """\
/* A pointer to an element of memory that holds elements of several types over time; it is aligned as its type is. */
#ifdef __GNUC__
#define ALIGNED_AS(p, type) __builtin_assume_aligned(p, sizeof(type) < sizeof(void *) ? sizeof(type) : sizeof(void *))
#else
#define ALIGNED_AS(p, type) (p)
#endif"""

ASSERTIONS = {
    "": ("(unsigned char)-1 == 255", "(int8_t)(unsigned)0x80 == -128", "(int32_t)(uint32_t)0x80000000u == -2147483647 - 1",
         "-5 >> 1 == -3", "sizeof(unsigned) <= 4"),
    "float": ("sizeof(float) == 4", "FLT_RADIX == 2 && FLT_MANT_DIG == 24", "FLT_EVAL_METHOD == 0"),
    "double": ("sizeof(double) == 8", "DBL_MANT_DIG == 53"),
}
"""Static assertions of a file, by the word whose occurrence needs them."""


LIBRARY = """\
/* What the C library has: by way of the compiler where it knows these, so that it does without the library's headers. */
#ifdef __GNUC__
#define COPY(to, from, size) __builtin_memcpy(to, from, size)
#define FILL(to, byte, size) __builtin_memset(to, byte, size)
#define SQRT_F32(x) __builtin_sqrtf(x)
#define SQRT_F64(x) __builtin_sqrt(x)
#define FMA_F32(x, y, z) __builtin_fmaf(x, y, z)
#define FMA_F64(x, y, z) __builtin_fma(x, y, z)
#define INFINITE __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")
#else
#include <math.h>
#include <string.h>
#define COPY(to, from, size) memcpy(to, from, size)
#define FILL(to, byte, size) memset(to, byte, size)
#define SQRT_F32(x) sqrtf(x)
#define SQRT_F64(x) sqrt(x)
#define FMA_F32(x, y, z) fmaf(x, y, z)
#define FMA_F64(x, y, z) fma(x, y, z)
#define INFINITE INFINITY
#define NOT_A_NUMBER NAN
#endif"""


NEEDED = {"COPY": "memcpy", "FILL": "memset", "SQRT_F32": "sqrtf", "SQRT_F64": "sqrt", "FMA_F32": "fmaf", "FMA_F64": "fma"}


def needs(text: str) -> tuple[str, ...]:
    """Functions of the C library that a whole file may call, where its compiler does not write them itself."""
    return tuple(name for macro, name in NEEDED.items() if f"#define {macro}(" in text)


def library(text: str) -> list[str]:
    """Return the library functions that a file with this text uses."""
    lines = [line for line in LIBRARY.splitlines() if (m := re.match(r"#define (\w+)", line)) is None
             or re.search(rf"\b{m[1]}\b", text)]
    mathematics = any(re.search(rf"#define {w}", line) for line in lines for w in ("SQRT", "FMA", "INFINITE", "NOT_"))
    bytes_moved = any(re.search(rf"#define {w}", line) for line in lines for w in ("COPY", "FILL"))
    lines = [line for line in lines if (mathematics or "math.h" not in line) and (bytes_moved or "string.h" not in line)]
    return ["\n".join(lines)] if mathematics or bytes_moved else []


def headers(text: str) -> list[str]:
    """Headers that a file with this text needs: those that a compiler has without a library."""
    found = ["#include <stddef.h>", "#include <stdint.h>"]
    if re.search(r"\b(bool|true|false)\b", text):
        found.append("#include <stdbool.h>")
    if re.search(r"\b(float|double)\b", text):
        found.append("#include <float.h>")
    return found


def assertions(text: str) -> list[str]:
    """Checks that the compiler makes, as C99 has them: an array of a negative size is an error."""
    needed = [check for word, checks in ASSERTIONS.items() if re.search(rf"\b{word}\b", text) for check in checks]
    lines = [f"typedef char tosaic_assertion_{i}[({check}) ? 1 : -1];" for i, check in enumerate(needed)]
    order = ('#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n'
             '#error "the processor is not little-endian"\n#endif')
    return [*lines, order]


def prologue(text: str, helpers: Helpers) -> list[str]:
    """Return the part of a file before its kernels; `text` is the rest of the file."""
    functions = list(helpers.functions.values())
    whole = "\n".join([text, *functions, *helpers.vectors.values()])
    sections = ["\n".join(headers(whole)), *library(whole)]
    if re.search(r"\b(float|double)\b", whole):
        sections.append(NO_FUSING)
    sections.append("\n".join(assertions(whole)))
    if "ALIGNED_AS(" in whole:
        sections.append(ALIGNED_AS)
    if helpers.vectors:
        sections.append("\n".join(helpers.vectors.values()))
    return [*sections, *functions]
