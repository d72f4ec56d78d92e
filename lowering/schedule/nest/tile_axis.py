"""Cuts of an axis: tiles of equal size for loops, pieces of a tile for vectors. Plain arithmetic on extents."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand


@dataclass(frozen=True, slots=True)
class Tiles:
    """`count` tiles of `size` elements from `start` on. The last tile begins `again` elements early: these elements are
    computed twice, so that all tiles are alike."""
    start: int
    size: int
    count: int
    again: int = 0

    @property
    def end(self) -> int:
        return self.start + self.size * self.count - self.again


@dataclass(frozen=True, slots=True)
class Piece:
    """A vector of a tile: `lanes` elements from `start` on, of which the first `active` exist."""
    start: int
    lanes: int
    active: int


Cut = list[tuple[Tiles, tuple[Piece, ...]]]
"""The panels of the columns, and the vectors of each."""


def balanced(extent: int, largest: int) -> list[Tiles]:
    """Return as few tiles of at most `largest` elements as possible, as equal in size as possible."""
    count = -(-extent // largest)
    size, longer = divmod(extent, count)
    found = [Tiles(0, size + 1, longer), Tiles(longer * (size + 1), size, count - longer)]
    return [t for t in found if t.count]


def repeating(extent: int, size: int) -> list[Tiles]:
    """Return tiles of one size; the last may overlap the one before it."""
    count = -(-extent // size)
    return [Tiles(0, size, count, count * size - extent)]


def chunks(extent: int, size: int) -> list[Tiles]:
    """Return whole tiles of one size, and the remainder."""
    found = [Tiles(0, size, extent // size), Tiles(extent // size * size, extent % size, 1)]
    return [t for t in found if t.count and t.size]


def pieces(size: int, lanes: int, masked: bool, least: int = 1) -> tuple[Piece, ...]:
    """Return vectors for `size` elements: whole ones, then one partial vector with `masked`, else ever shorter ones (powers of
    two) that end exactly. Each vector has at least `least` lanes, some of which may be inactive."""
    result = [Piece(start, lanes, lanes) for start in range(0, size - lanes + 1, lanes)]
    start = len(result) * lanes
    while start < size:
        rest = size - start
        if masked:
            width = lanes if result else max(1 << (rest - 1).bit_length(), least)
        else:
            width = max(1 << (rest.bit_length() - 1), least)
        result.append(Piece(start, width, min(width, rest)))
        start += width
    return tuple(result)


def even(size: int, lanes: int) -> tuple[Piece, ...]:
    """Return as few vectors as possible, with equal numbers of active lanes and at equal distances, so that one piece of code
    serves all. Some elements may be in two vectors."""
    count = -(-size // lanes)
    active = -(-size // count)
    if count > 1 and (size - active) % (count - 1):
        active = next((n for n in range(active, lanes + 1) if (size - n) % (count - 1) == 0), 0)
    if not active:
        return pieces(size, lanes, True)
    step = (size - active) // max(count - 1, 1)
    return tuple(Piece(i * step, lanes if count > 1 else 1 << (active - 1).bit_length(), active) for i in range(count))


def peel(tiles: Sequence[Tiles], low: int, high: int, single: bool = False) -> list[Tiles]:
    """Cut off each tile that is not wholly inside [low, high), so that its position is a constant. If there are many such
    tiles, or with `single`, cut off their elements one by one instead."""
    result: list[Tiles] = []
    outside = sum(not (low <= t.start + i * t.size and t.start + (i + 1) * t.size <= high)
                  for t in tiles for i in range(t.count))

    def border(starts: list[int], size: int) -> list[Tiles]:
        if not starts or not (single or outside > 6):
            return [Tiles(s, size, 1) for s in starts]
        return [Tiles(starts[0], 1, size * len(starts))]

    for t in tiles:
        starts = [t.start + i * t.size for i in range(t.count)]
        inside = [s for s in starts if low <= s and s + t.size <= high]
        result += border([s for s in starts if s < low], t.size)
        result += [Tiles(inside[0], t.size, len(inside))] if inside else []
        result += border([s for s in starts if s >= low and s + t.size > high], t.size)
    return result


def interior(axis: Axis, where: Iterable[Range]) -> tuple[int, int]:
    """Return the range of positions of `axis` at which no condition that mentions the axis can fail."""
    low, high = 0, axis.extent
    for r in where:
        c = r.index.coefficient(axis)
        if c:
            least, most = r.index.without(axis).bounds
            if c < 0:
                first, last = -((r.high - 1 - most) // -c), (least - r.low) // -c
            else:
                first, last = -(-(r.low - least) // c), (r.high - 1 - most) // c
            low, high = max(low, first), min(high, last + 1)
        elif axis in r.index.hidden:
            return 0, 0
    low = min(low, axis.extent)
    return low, max(high, low)


def breaks(axis: Axis, where: Iterable[Range]) -> list[int]:
    """Return the cuts 0, ..., extent of an axis, such that conditions on the axis alone do not change between two cuts."""
    cuts = {0, axis.extent}
    for r in where:
        if len(r.index.terms) == 1 and r.index.terms[0][0] is axis:
            c, const = r.index.terms[0][1], r.index.const
            for bound in (r.low, r.high):
                cut = -((const - bound) // c) if c > 0 else (const - bound) // -c + 1
                cuts.add(min(max(cut, 0), axis.extent))
    return sorted(cuts)


def over(b: Builder, tiles: Iterable[Tiles], run: Callable[[Affine, Tiles], None], group: int = 1) -> None:
    """Call `run` with the start of each tile. Tiles of one size become a loop. Tiles of whole groups start at groups."""
    for t in tiles:
        if t.count == 1 and b.depth >= b.keeps:
            run(Affine.of(t.start), t)
        else:
            axis = Axis("tile", t.count)
            b.loop(axis, lambda: run(start_of(b, Affine.of(axis), t, group) + t.start, t))


def in_steps(b: Builder, extent: int, size: int, run: Callable[[Affine, int, Sequence[Operand]], Sequence[Operand]],
             carried: Sequence[Operand] = ()) -> Sequence[Operand]:
    """Call `run` with the number of each step of `size` elements, the number of elements in the step, and the carried values:
    in a loop over whole steps, then for the remainder."""
    whole, rest = divmod(extent, size)
    step = Axis("step", whole)
    if whole:
        carried = b.loop(step, lambda *before: run(Affine.of(step), size, before), carried)
    return run(Affine.of(whole), rest, carried) if rest else carried


def start_of(b: Builder, number: Affine, t: Tiles, group: int) -> Affine:
    """Return the start of a tile of the open loop, clamped so that the last tile ends with the axis."""
    if not t.again:
        return number * t.size
    step = group if t.size % group == 0 and t.again % group == 0 else 1
    place = Axis("place", (t.size * (t.count - 1) - t.again) // step + 1)
    b.place(place, b.op("min", b.index(number * (t.size // step)), Literal(place.extent - 1, INDEX)))
    return Affine.of(place) * step
