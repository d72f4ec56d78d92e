"""The properties of a machine that follow from LLVM's feature bits: its vectors, masks, dot products and matrix unit. The names
are LLVM's, those of clang's `-mattr`. Nothing here knows a machine; `presets` does.
"""
from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Set
from typing import Literal

from ...runtime.errors import ValueProblem

DotProduct = Literal["u8s8", "s8s8"]
"""Products of bytes that are summed four to an int32 lane, by operand types: u8 x s8 is VNNI, s8 x s8 SDOT."""
MatrixType = Literal["int8", "bfloat16"]
"""Operand types whose products a matrix unit sums in tile registers."""

SSE2 = "+64bit,+cmov,+cx8,+fxsr,+mmx,+sse,+sse2"
V2 = SSE2 + ",+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
V3 = V2 + ",+avx,+avx2,+bmi,+bmi2,+crc32,+f16c,+fma,+lzcnt,+movbe,+xsave"
V4 = V3 + ",+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
"""The levels of x86-64."""
AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
AMX_INT8 = frozenset({"amx-tile", "amx-int8"})
AMX_BFLOAT16 = frozenset({"amx-tile", "amx-bf16"})


@functools.lru_cache(maxsize=64)
def enabled(features: str) -> frozenset[str]:
    """Return the features that a list enables."""
    return frozenset(f[1:] for f in features.split(",") if f.startswith("+"))


def merged(features: str, others: str) -> str:
    """Append features to a list; the last mention of a feature counts."""
    for feature in filter(None, others.split(",")):
        if feature[0] not in "+-":
            raise ValueProblem(f"feature {feature!r} is neither on nor off", kind="option", help=f"+{feature} or -{feature}")
    return ",".join({f[1:]: f for f in f"{features},{others}".split(",") if f}.values())


# ---- x86 -------------------------------------------------------------------------------------------------------------
def has_masks(on: Set[str]) -> bool:
    """True if there are vectors of 64 bytes with masks; then there are twice as many registers, too."""
    return on >= AVX512


def vector_bytes(on: Set[str]) -> int:
    return 64 if has_masks(on) else 32 if "avx2" in on else 16


def dot_product(on: Set[str]) -> DotProduct | None:
    return "u8s8" if ("avx512vnni" if has_masks(on) else "avxvnni") in on else None


def matrix_unit(on: Set[str]) -> tuple[MatrixType, ...]:
    """Return the operand types of the matrix unit (AMX), if the vectors that go with it exist, too. Whether the system lets a
    process use it is another question."""
    found: list[MatrixType] = []
    if on >= AMX_INT8 and has_masks(on) and dot_product(on):
        found.append("int8")
    if on >= AMX_BFLOAT16 and has_masks(on):
        found.append("bfloat16")
    return tuple(found)


# ---- 64-bit Arm ------------------------------------------------------------------------------------------------------
def arm64_dot_product(on: Set[str]) -> DotProduct | None:
    return "s8s8" if {"neon", "dotprod"} <= on else None


# ---- RISC-V ----------------------------------------------------------------------------------------------------------
def vector_bits(on: Set[str]) -> int:
    """Return the bits of a vector register according to the features; 0 without vectors."""
    return max((int(found[1]) for f in on if (found := re.fullmatch(r"zvl(\d+)b", f))), default=0)


# ---- all families ----------------------------------------------------------------------------------------------------
def float_unit(architecture: str, on: Set[str]) -> tuple[str, ...]:
    """Return the float types that a processor is known to compute in instructions; arithmetic of others is in the compiler's
    library."""
    match architecture:
        case "thumb":
            return ("float32", "float64") if "fp64" in on else ("float32",) if "vfp4d16sp" in on else ()
        case "riscv":
            return tuple(dtype for dtype, feature in (("float32", "f"), ("float64", "d")) if feature in on)
        case "xtensa":
            return ("float32",) if "fp" in on else ()
        case "avr" | "c99":
            return ()
    return "float32", "float64"


def fused_floats(architecture: str, on: Set[str]) -> tuple[str, ...]:
    """Return the float types with a fused multiply-add, rounded once."""
    match architecture:
        case "x86":
            return ("float32", "float64") if on & {"fma", "avx512f"} else ()
        case "aarch64":
            return "float32", "float64"
        case "arm":
            return ("float32", "float64") if "fp64" in on else ("float32",) if "vfp4d16sp" in on else ()
        case "riscv":
            return float_unit(architecture, on)
    return ()


def lacking_integers(architecture: str, on: Set[str]) -> frozenset[str]:
    """Return the operations for which 32-bit Arm has no instruction: division, and 64-bit arithmetic, in LLVM's spelling."""
    if architecture != "thumb":
        return frozenset()
    found = set[str]()
    if "hwdiv" not in on:
        found |= {f"{op} {scalar}" for op in ("udiv", "sdiv") for scalar in ("i8", "i16", "i32")}
    if "thumb2" not in on:
        found |= {"mul i64", "shl i64", "lshr i64", "ashr i64", "ctlz i8", "ctlz i16", "ctlz i32", "ctlz i64"}
    return frozenset(found)


SHAPES_TILES = "llvm.x86.ldtilecfg"
"""The intrinsic that shapes tile registers, which identifies code that uses the matrix unit."""

# ---- names -----------------------------------------------------------------------------------------------------------
@functools.cache
def check_names(triple: str, cpu: str, features: str) -> None:
    """Raise a Problem if LLVM does not know a processor or a feature. LLVM says so only on the standard error of its process,
    so another process asks."""
    question = ("import sys, llvmlite.binding as llvm; llvm.initialize_all_targets(); llvm.Target.from_triple(sys.argv[1])"
                ".create_target_machine(cpu=sys.argv[2], features=sys.argv[3])")
    answer = subprocess.run([sys.executable, "-c", question, triple, cpu, features], capture_output=True, text=True)
    found = re.search(r"'([^']*)' is not a recognized (processor|feature)", answer.stderr)
    if found is not None or answer.returncode:
        what = f"{found[2]} {found[1]}" if found is not None else f"processor {cpu} with features {features}"
        raise ValueProblem(f"LLVM knows no {what} for {triple}", kind="option",
                           help="names are LLVM's: those of clang's -mcpu, and of its -mattr")
