"""The tiling of a contraction's rows when its window leaves the input at the border.

Either the tiles at the border have their windows unrolled, which is much code; or the rows at the border are computed one by
one, with loop bounds that select the part of the window inside. Single rows take several panels together, because one row of
few vectors waits for its own sums.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ...elements.affine import Affine, Axis
from ...loops.builder import Builder
from ...loops.cost import tile_step_cycles
from ...target.target import Target
from ..code_size_model import SLOWDOWN_CYCLES, SLOWDOWN_FRACTION, TileCode, cheapest, price_of, tolerated
from ..nest.tile_axis import Cut, Piece, Tiles, balanced, over, peel, repeating
from .register_tile import Tile

MAX_SLOWDOWN_CYCLES, MAX_BORDER_SLOWDOWN_CYCLES = 4000, 30_000
"""Maximum additional cycles for the smaller code, and the same for code that is so much smaller that each line saves enough."""
PACKED_TILE_LINES = 60
"""Number of lines of LLVM's text that pack the rows of a tile."""
MAX_SUMS_OF_A_ROW = 6
"""Maximum number of independent sums of a single row, which is enough to hide the latency of one addition."""
MAX_SUMS_BESIDE = 5
"""Maximum number of copies of the sums of a single row."""
MAX_FEWER_ROWS = 3
"""Maximum number of rows by which overlapping tiles of one size may be smaller than the register tile."""
MAX_ROW_VECTORS = 8
"""Maximum vectors of a single row: enough to start two sums each cycle, with some to spare."""


def heights(extent: int, inside: tuple[int, int], tile: Tile, single: bool, cut: Cut, passes: int, target: Target,
            tested: bool = False, code: TileCode | None = None, again: bool = False, fractions: Sequence[float] = (),
            packed_rows: float | None = None) -> list[Tiles]:
    """Return the tiles of `extent` rows, of which those `inside` meet no condition. With `single` the border goes by single
    rows in any case. `cut` is the single rows' cut of the columns, `passes` the number of repetitions of everything. With
    `tested` some rows at the border do not exist, so that rows there are tested one by one. If rows may be computed `again`,
    all tiles may be alike. `fractions` are the fractions of each row's window that are inside. If rows are packed, tiles
    anywhere may meet conditions, since each row is tested in `packed_rows` cycles at each step."""
    low, high = inside
    last = code.last if code else 1

    def cycles(tiles: Sequence[Tiles]) -> float:
        return sum(lasting(t, tile, cut, target, last) * mean(fractions, t) for t in tiles)

    def cheap(found: Sequence[list[Tiles]]) -> list[Tiles]:
        """Return the tiles that cost least in cycles and code."""
        return cheapest(found, cycles, lambda tiles: lines(tiles, inside, cut, code), code.passes, code.share,
                        SLOWDOWN_CYCLES if high - low == extent else MAX_BORDER_SLOWDOWN_CYCLES) if code else found[0]

    if tested:
        return [Tiles(0, 1, extent)] if low == high else one_by_one(extent, inside, tile, cheap, again)
    whole = peel(balanced(extent, tile.rows), low, high, single)
    if high - low == extent:
        return cheap([whole, repeating(extent, tile.rows)]) if again and len(whole) > 1 else whole
    if low == high:
        return whole
    share, rowwise = code.share if code else SLOWDOWN_FRACTION, one_by_one(extent, inside, tile, cheap, again)
    if code and not single and max(low, extent - high) <= tile.rows:
        whole = cheap([whole, *at_ends(extent, inside, tile, again)])
    fewest, more = cycles(whole), cycles(rowwise)
    less = lines(whole, inside, cut, code) - lines(rowwise, inside, cut, code) if code else 0
    few = max(MAX_SLOWDOWN_CYCLES, min(price_of(share) * less, tolerated(fewest * passes, share, MAX_BORDER_SLOWDOWN_CYCLES)))
    best = rowwise if (more - fewest) * passes <= few else whole
    if packed_rows is None or code is None:
        return best
    (first, *others) = balanced(extent, tile.rows)
    everywhere = [repeating(extent, first.size)] if again or not others else []
    return cheapest([best, *everywhere], lambda tiles: cycles(tiles) + packed_rows * extent * (tiles in everywhere),
                    lambda tiles: PACKED_TILE_LINES * len(tiles) + lines(
                        tiles, (0, extent) if tiles in everywhere else inside, cut, code), passes, share,
                    MAX_BORDER_SLOWDOWN_CYCLES)


def mean(fractions: Sequence[float], tiles: Tiles) -> float:
    """Return the mean fraction of these rows' windows that is inside."""
    rows = fractions[tiles.start:tiles.end]
    return sum(rows) / len(rows) if rows else 1


def lines(tiles: Sequence[Tiles], inside: tuple[int, int], cut: Cut, code: TileCode) -> int:
    """Return the lines of code of tiles: those of each size once, and those of each border tile that is no single row."""
    vectors = max(len(pieces) for _, pieces in cut)
    alike = {t.size for t in tiles if t.size == 1 or inside[0] <= t.start <= t.end <= inside[1]}
    at_border = [t.size for t in tiles if t.size > 1 and not inside[0] <= t.start <= t.end <= inside[1]]
    return sum(code.lines(n, vectors) for n in alike) + sum(code.border(n, vectors) for n in at_border)


def one_by_one(extent: int, inside: tuple[int, int], tile: Tile,
               cheap: Callable[[Sequence[list[Tiles]]], list[Tiles]] = lambda found: found[0], again: bool = False
               ) -> list[Tiles]:
    """Return tiles with single rows at the border, chosen by `cheap`."""
    return cheap(single_at_ends(extent, inside, tile, again))


def single_at_ends(extent: int, inside: tuple[int, int], tile: Tile, again: bool = False) -> list[list[Tiles]]:
    """Return tilings with single rows at the border, equally many at both ends if there are some at both, so that the ends
    share their code. The inside may be tiles of one size and more single rows."""
    low, high = inside
    both = max(low, extent - high)
    if low and high < extent and 2 * both < extent:
        low, high = both, extent - both
    found = [with_middle(extent, low, high, balanced(high - low, tile.rows))]
    for size in range(2, tile.rows + 1):
        count, rest = divmod(high - low, size)
        if count and (not rest or low == 0 or high == extent or rest % 2 == 0):
            before = 0 if low == 0 else rest if high == extent else rest // 2
            found.append(with_middle(extent, low + before, high - rest + before, [Tiles(0, size, count)]))
    if again:
        found += [with_middle(extent, low, high, repeating(high - low, size))
                  for size in range(min(tile.rows, high - low), max(1, tile.rows - MAX_FEWER_ROWS), -1)]
    return found


def at_ends(extent: int, inside: tuple[int, int], tile: Tile, again: bool) -> list[list[Tiles]]:
    """Return tilings with one tile at each border, as large as the border."""
    low, high = inside
    ends, middle = (Tiles(0, low, 1), Tiles(high, extent - high, 1)), high - low
    found = [balanced(middle, tile.rows), *(
        repeating(middle, size) for size in range(min(tile.rows, middle), 1, -1) if again or middle % size == 0)]
    return [[t for t in (ends[0], *(Tiles(low + t.start, t.size, t.count, t.again) for t in tiles), ends[1]) if t.size]
            for tiles in found]


def with_middle(extent: int, low: int, high: int, middle: Sequence[Tiles]) -> list[Tiles]:
    """Return the tiles `middle` with single rows before and after them."""
    tiles = [Tiles(low + t.start, t.size, t.count, t.again) for t in middle]
    return [t for t in (Tiles(0, 1, low), *tiles, Tiles(high, 1, extent - high)) if t.count]


def over_both_ends(b: Builder, lines: Sequence[Tiles], run: Callable[[Affine, Tiles], None]) -> None:
    """Call `run` with the start of each tile of rows; equally many single rows at both ends share their code."""
    first, last = lines[0], lines[-1]
    if len(lines) < 3 or (first.size, first.count) != (1, last.count) or last.size != 1:
        over(b, lines, run)
        return
    end = Axis("end", 2)
    b.loop(end, lambda: over(b, [first], lambda start, t: run(start + Affine.of(end) * (last.start - first.start), t)))
    over(b, lines[1:-1], run)


def lasting(rows: Tiles, tile: Tile, cut: Cut, target: Target, last: int = 1) -> float:
    """Return the cycles of one step of K for some rows and all columns; `last` is the number of steps of the last axis."""
    vectors = sum(t.count * len(pieces) for t, pieces in cut)
    loading = rows.count * target.costs.tile_prices.panel_vector_cycles * vectors
    if rows.size == 1:
        return loading + rows.count * sum(t.count * alone(len(vectors), last, target) for t, vectors in cut)
    return loading + rows.count * -(-vectors // tile.vectors) * tile_step_cycles(rows.size, min(tile.vectors, vectors), target)


def alone(vectors: int, last: int, target: Target) -> float:
    """Return the cycles of one step of a single row."""
    beside = sums_beside(vectors, last)
    return tile_step_cycles(beside, vectors, target) / beside


def sums_beside(vectors: int, last: int, most: int = MAX_SUMS_BESIDE) -> int:
    """Return the number of independent copies of a single row's sums, so that no addition waits for the one before. Each copy
    takes every n-th step of the last axis, whose steps are a multiple of n; `most` copies fit the registers."""
    return max(n for n in range(1, min(MAX_SUMS_BESIDE, most) + 1)
               if last % n == 0 and (n == 1 or n * vectors <= MAX_SUMS_OF_A_ROW))


def grouped_panels(cut: Cut, most: int = MAX_ROW_VECTORS) -> Cut:
    """Return the columns of single rows: several panels at a time, of at most `most` vectors together."""
    return [grouped(t, vectors, most) for t, vectors in cut]


def grouped(t: Tiles, vectors: Sequence[Piece], most: int = MAX_ROW_VECTORS) -> tuple[Tiles, tuple[Piece, ...]]:
    count = max(n for n in range(1, t.count + 1) if t.count % n == 0 and (n == 1 or n * len(vectors) <= most))
    return Tiles(t.start, t.size * count, t.count // count), tuple(
        Piece(number * t.size + p.start, p.lanes, p.active) for number in range(count) for p in vectors)
