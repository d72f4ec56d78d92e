"""Targets that tests compile for, and whether this machine can run their code: by the features that the code uses, whatever the
processor is called.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tosaic.lowering.loops.ir import Function, Let, walk
from tosaic.lowering.target.presets import host
from tosaic.lowering.target.target import Target

HOST = host().enabled
ENCODINGS = (("avxvnni",), ("avx512f", "avx512vl", "avx512vnni"))
"""Features that have products of bytes in vectors of 32 bytes: AVX-VNNI, or the same instruction of AVX-512 (AMD's processors
before Zen 5 have only this one)."""
DOT_PRODUCTS = ("avxvnni", "avx512vnni")


def with_dot_products(plain: Target) -> Target:
    """The target with products of bytes in vectors of its size, as this machine has them; as Intel has, where it has none."""
    names = next((e for e in ENCODINGS if set(e) <= HOST), ENCODINGS[0])
    return replace(plain, features=",".join([plain.features, *(f"+{name}" for name in names)]), dot_product="u8s8")


def used(functions: Sequence[Function], target: Target) -> Target:
    """The target without the features for products of bytes, where none of the functions has any: the same code, which more
    machines can run."""
    if any(isinstance(s, Let) and s.op == "dot4" for f in functions for s in walk(f.body)):
        return target
    kept = [f for f in target.features.split(",") if f[1:] not in DOT_PRODUCTS]
    return replace(target, features=",".join(kept), dot_product=None)


def missing(target: Target) -> list[str]:
    """The features of a target that this machine lacks."""
    return sorted(target.enabled - HOST)


def runs_here(target: Target) -> bool:
    """True if this machine can run the target's code."""
    return not missing(target)
