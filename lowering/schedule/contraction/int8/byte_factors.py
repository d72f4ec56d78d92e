"""The factors of a product of bytes, each a byte less its zero point, and the lowerings that they allow."""
from __future__ import annotations

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis, Range
from ....elements.expression import Apply, Cast, Const, Expr, Load
from ....elements.traverse import computed
from ....target.target import Target
from ...nest.constant_data import is_constant
from ..pack_a import run_of
from ..pattern import Contraction

GROUP = 4
"""Number of bytes of a factor that most machines multiply at a time in a lane."""
MIN_PASSES = 4
"""Minimum number of rows that make up for packing b at run time."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """The factors of a product of bytes: a is x less its zero point, b is y less its zero point; y is int8."""
    x: Load
    of_x: int
    y: Load
    of_y: int


def byte(e: Expr) -> tuple[Load, int] | None:
    """Return (x, z) if e is x - z, in int32, and x is a byte; else None."""
    match e:
        case Cast(Load() as x, "int32", False) if x.dtype in ("int8", "uint8"):
            return x, 0
        case Apply("sub", (inner, Const(z))) if (found := byte(inner)) and not found[1]:
            return found[0], int(z)
    return None


def bytes_of(pattern: Contraction) -> Bytes | None:
    """Return the factors, if a and b suit `dot4`: the bytes of a are contiguous along K, zero points are bytes, and b is
    constant, or worth packing at run time; else None."""
    a, b = byte(pattern.a), byte(pattern.b)
    if not a or not b or b[0].dtype != "int8":
        return None
    x, of_x = a
    y, of_y = b
    lowest = -128 if x.dtype == "int8" else 0
    plain = not computed(x.index) and x.index[0].coefficient(pattern.reduce.axes[-1]) == 1
    if not plain or not lowest <= of_x < lowest + 256 or not -128 <= of_y < 128 or (pattern.inside and of_y):
        return None
    return Bytes(x, of_x, y, of_y) if is_constant(y) or can_pack(pattern, y) else None


def constant_bytes(pattern: Contraction) -> Bytes | None:
    """Return the factors, if b is constant, has no zero point, and is summed completely, in 32 bits; else None."""
    found = bytes_of(pattern) if pattern.reduce.dtype == "int32" and not pattern.inside else None
    return found if found and not found.of_y and is_constant(found.y) else None


def are_summed_in_lanes(pattern: Contraction, target: Target) -> bool:
    """True if each lane computes several products at a time, with packed rows."""
    found = bytes_of(pattern)
    return found is not None and (target.dot_product is not None or (target.multiplies_int16_pairs and is_constant(found.y)))


def is_one_run(pattern: Contraction, x: Load) -> bool:
    """True if K is one run of memory in x, of which nothing is left out."""
    return not pattern.reduce.where and run_of(x, pattern.reduce.axes, ()) == pattern.reduce.axes


def has_words(pattern: Contraction) -> bool:
    """True if K's last axis has whole groups, and padding never leaves out part of a group."""
    last = pattern.reduce.axes[-1]
    return last.extent % GROUP == 0 and not any(
        w.index.coefficient(last) or last in w.index.hidden for w in pattern.reduce.where)


def can_pack(pattern: Contraction, y: Load) -> bool:
    """True if panels can be packed at run time, and that pays."""
    *outer, last = pattern.reduce.axes
    whole = not outer or last.extent % GROUP == 0
    return whole and not pattern.inside and not computed(y.index) and pattern.passes >= MIN_PASSES


def prefixes(pattern: Contraction, flat: Axis) -> tuple[Range, ...] | None:
    """Return the conditions on b alone as bounds of flat K, whose length changes linearly along an outer axis; None if the
    conditions have another form."""
    result, (outermost, *_) = [], pattern.reduce.axes
    for w in pattern.inside:
        others = [a for a in w.index.axes if a is not outermost]
        if len(others) != 1 or not w.index.coefficient(outermost):
            return None
        (outer,) = others
        holds = [[w.substitute({outer: Affine.of(i), outermost: Affine.of(j)}).known for j in range(outermost.extent)]
                 for i in range(outer.extent)]
        counts = [row.count(True) for row in holds]
        step = counts[1] - counts[0]
        if any(not all(row[:n]) or n != counts[0] + i * step for i, (row, n) in enumerate(zip(holds, counts))):
            return None
        size = pattern.depth // outermost.extent
        reach = Affine.of(flat) - Affine.of(outer) * (step * size)
        result.append(Range(reach, reach.bounds[0], counts[0] * size))
    return tuple(result)
