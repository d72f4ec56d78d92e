"""A window of bytes with constant weights whose lanes are neighbouring outputs (depthwise convolution), several taps at a time.
A word in each lane holds the bytes of four taps, and a dot product of bytes adds all four; or, if the machine multiplies pairs
of 16 bits, the bytes of two taps with zeros between.

Bytes are made unsigned or signed, as the instruction requires, by adding 128 to signed bytes or subtracting it from unsigned
ones; padding is filled with the zero point. The resulting offset of a sum depends on the column only, and is subtracted from
the sum's initial value. Words that neighbouring rows of a tile share are made once.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range, Wrapped
from ...elements.expression import Apply, Expr, Load, Reduce
from ...elements.traverse import computed
from ...target.target import Target
from ..contraction.initial_sums import biased
from ..contraction.int8.byte_factors import byte
from ..nest.constant_data import is_constant
from ..nest.loop_nest import Nest, free_axes, main_reduction
from ..nest.tile_axis import Tiles, balanced, interior, peel
from .int8_blocks import Band, choose

MIN_SINGLE_LANES = 8
"""Minimum lanes of sums for a window that is computed one vector of sums at a time: with four, assembling bytes lane by lane
takes longer than single products. Counted."""
MAX_TAPS = 64
"""Maximum number of taps of a window, all of which are unrolled."""
WORD_BYTES = 4
"""Bytes that products take in a lane."""
Tap = Mapping[Axis, Affine]


@dataclass(frozen=True, slots=True, eq=False)
class ByteWindow:
    """The pattern of a byte window. `group` is the window axis whose taps share words. `settled` are the conditions that are
    known at a constant position of `m`. `open`, if there is one, is a condition on an outer axis and `group`."""
    reduce: Reduce
    x: Load
    zero_point: int
    weights: Expr
    m: Axis | None
    n: Axis
    group: Axis
    settled: tuple[Range, ...]
    open: Range | None
    is_signed: bool
    """True if products take signed bytes of x."""
    taps: int
    """Number of taps of a word: four bytes, or two non-negative 16-bit numbers. Two are for vectors without masks. Measured:
    MobileNets took 3 to 6 % less time with AVX2, 4 to 12 % less with SSE, up to 2 % more with AVX-512."""

    @property
    def others(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.reduce.axes if a is not self.group)

    @property
    def words(self) -> list[list[Tap]]:
        """Taps of each word of a window, group by group."""
        taps = [range(first, min(first + self.taps, self.group.extent)) for first in range(0, self.group.extent, self.taps)]
        places = list(itertools.product(*(range(a.extent) for a in self.others)))
        return [[{self.group: Affine.of(k), **dict(zip(self.others, map(Affine.of, place)))} for k in some]
                for some in taps for place in places]

    @property
    def factor(self) -> str:
        """Type of the factors in words."""
        return "int8" if self.taps == WORD_BYTES else "int16"

    @property
    def tap_bits(self) -> int:
        """Distance, in bits, between the taps of a word."""
        return 8 * WORD_BYTES // self.taps

    @property
    def fill(self) -> int:
        """Byte that represents padding, with the signedness that products take."""
        return self.zero_point + 128 * ((self.x.dtype == "int8") - self.is_signed)

    @property
    def flip(self) -> int:
        """Bits of a byte to flip to give it the signedness that products take: the top bit, or none."""
        return 0 if (self.x.dtype == "int8") == self.is_signed else 128


@dataclass(frozen=True, slots=True)
class ByteWindowChoice:
    """Tiles of `rows` outputs along the last but one axis by a vector of `lanes` along the last; `words` words a window."""
    pattern: ByteWindow
    rows: int
    lanes: int
    words: int
    bands: tuple[Band, ...] = ()
    """Blocks of columns that are computed a vector of bytes at a time."""

    def __str__(self) -> str:
        blocks = "".join(f", {band}" for band in self.bands)
        tile = f"tiles of {self.rows} rows by 1 vectors of {self.lanes}"
        return f"window: dot{self.pattern.taps}, {tile}, {self.words} words a place{blocks}"


# ---- the pattern -----------------------------------------------------------------------------------------------------
def recognise(nest: Nest, target: Target, rows: bool) -> ByteWindowChoice | None:
    inner = nest.axes[1:] if rows else nest.axes
    taps = target.products_in_a_lane
    if taps == 1 or (taps < WORD_BYTES and target.has_masked) or not inner or nest.where:
        return None
    m = inner[-2] if len(inner) > 1 else None
    pattern = pattern_of(nest, m, inner[-1], target)
    lanes = target.lanes(4)
    if pattern is None or lanes < WORD_BYTES:
        return None
    height = tile_rows(pattern, target)
    known, _ = biased(nest, pattern.reduce, (pattern.n,))
    if found := choose(nest, known, pattern.n, lambda rows: lines_of(pattern, rows), target):
        return ByteWindowChoice(pattern, found[0], lanes, len(pattern.words), found[1])
    single = lanes >= MIN_SINGLE_LANES and lines_of(pattern, height)
    return ByteWindowChoice(pattern, height, lanes, len(pattern.words)) if single else None


def pattern_of(nest: Nest, m: Axis | None, n: Axis, target: Target) -> ByteWindow | None:
    match reduction := main_reduction(nest, n):
        case Reduce("add", axes, Apply("mul", factors)) if len(axes) <= 2 and math.prod(a.extent for a in axes) <= MAX_TAPS:
            for a, w in (factors, factors[::-1]):
                x, weight = byte(a), byte(w)
                if (x and weight and not weight[1] and weight[0].dtype == "int8" and is_constant(w)
                        and free_axes(w) <= {n, *axes}):  # packed once, for all rows
                    return grouped(nest, reduction, x, w, m, n, target)
    return None


def grouped(nest: Nest, reduction: Reduce, byte: tuple[Load, int], weights: Expr, m: Axis | None, n: Axis,
            target: Target) -> ByteWindow | None:
    """Return the pattern if lanes are contiguous in x, and each condition is known at a position of m or is the only one on a
    group; else None."""
    x, zero_point = byte
    (index,), lowest = x.index, -128 if x.dtype == "int8" else 0
    if computed(x.index) or index.coefficient(n) != 1 or n in index.hidden or m in index.hidden or not (
            lowest <= zero_point < lowest + 256):
        return None
    settled = tuple(w for w in reduction.where if m is not None and w.index.coefficient(m))
    rest = [w for w in reduction.where if w not in settled]
    inside = {*reduction.axes, *((m,) if m else ())}
    if any(w.index.hidden or computed((w.index,)) or w.index.coefficient(n) for w in reduction.where) or len(rest) > 1 or any(
            not w.index.axes <= inside for w in settled):
        return None
    mine = [a for w in rest for a in reduction.axes if w.index.coefficient(a)]
    if len(mine) > 1 or (rest and (not mine or moved(index, rest[0], Affine()) is None)):
        return None
    group = mine[0] if mine else reduction.axes[0]
    return ByteWindow(reduction, x, zero_point, weights, m, n, group, settled, rest[0] if rest else None,
                      target.dot_product == "s8s8", target.products_in_a_lane)


def moved(i: Affine, w: Range, to: Affine) -> Affine | None:
    """Return the index with the index of condition w replaced by `to`; None if the index does not contain that of w."""
    for term, c in i.terms:
        if isinstance(term, Wrapped) and term.source.axes & w.index.axes:
            inner = moved(term.source, w, to)
            rest = Affine(tuple((t, k) for t, k in i.terms if t is not term), i.const)
            if inner is None or rest.axes & w.index.axes:
                return None
            return rest + Affine(((Wrapped(inner, term.extent), c),)) if inner.terms else rest + inner.const % term.extent * c
    (first, c), *_ = w.index.terms
    factor, remainder = divmod(i.coefficient(first), c)
    rest = i - w.index * factor
    return None if remainder or not factor or rest.axes & w.index.axes else rest + to * factor


def tile_rows(pattern: ByteWindow, target: Target) -> int:
    """Return the rows of a tile: their sums and the words of one group fit the registers."""
    if pattern.m is None:
        return 1
    step = max((abs(pattern.x.index[0].coefficient(a)) for a in pattern.others), default=0)
    stride = -(-abs(pattern.x.index[0].coefficient(pattern.m)) // step) if step else 1
    window = math.prod(a.extent for a in pattern.others)
    fits = [r for r in range(1, 9) if r + min((r - 1) * stride + window, r * window) + 2 <= target.vector_registers]
    return min(max(fits, default=1), pattern.m.extent)


def lines_of(pattern: ByteWindow, rows: int) -> list[Tiles] | None:
    """Return the tiles of m, with constant positions at the border; None if these would be too many."""
    if pattern.m is None:
        return [Tiles(0, 1, 1)]
    low, high = interior(pattern.m, pattern.settled)
    lines = peel(balanced(pattern.m.extent, rows), low, high)
    fixed = all(t.count == 1 or (low <= t.start and t.start + t.size * t.count <= high) for t in lines)
    return lines if fixed else None
