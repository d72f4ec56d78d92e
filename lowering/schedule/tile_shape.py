"""When a product of bytes is done on a matrix unit, and in which blocks: a choice by form and target, of which `tile_products`
writes the loops.

All blocks have the same number of rows, so that tiles keep their shapes, whose setting takes hundreds of cycles: the last block
computes some rows again.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..elements.expression import Expr
from ..loops.ir import TILE_BYTES, TILE_ROWS
from ..native.target import Target
from .byte_panels import GROUP
from .conditions import Conditions
from .dot import Bytes, bytes_of
from .panels import Cut, is_constant
from .register_tile import Tile, choose_tile, panels, steps
from .staging import run_of
from .tiles import Piece, Tiles, chunks, interior

if TYPE_CHECKING:
    from .contraction import Contraction

LANES = 16
"""Sums in a row of a tile."""
MOST_APART = 6
"""Blocks of rows whose conditions are settled one by one at most."""
SET_BYTES = 4096
"""Rows so far apart fall into the same sets of the first-level cache."""
SET_UP_CYCLES, BLOCK_CYCLES = 300, 80
"""What it costs to give tiles their shapes, and a block beside its steps and its sums."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many rows each of the two tiles of a block has (none, in the second, where one is enough), and how many bytes of K a
    step takes."""
    heights: tuple[int, int]
    step: int
    count: int
    """Steps."""

    @staticmethod
    def of(form: Contraction) -> Shape:
        blocks = -(-form.rows // (2 * TILE_ROWS))
        rows = -(-form.rows // blocks)
        first = rows if rows <= TILE_ROWS else -(-rows // 2)
        step = min(TILE_BYTES, -(-form.depth // GROUP) * GROUP)
        return Shape((first, rows - first), step, -(-form.depth // step))

    @property
    def rows(self) -> int:
        return sum(self.heights)

    @property
    def depth(self) -> int:
        """K, filled up to whole steps."""
        return self.step * self.count

    @property
    def tiles(self) -> tuple[tuple[int, int], ...]:
        """Rows and bytes of tiles 0 to 7."""
        first, second = self.heights[0], self.heights[1] or 1
        return (*[(first, TILE_BYTES)] * 2, *[(second, TILE_BYTES)] * 2, (first, self.step), (second, self.step),
                *[(self.step // GROUP, TILE_BYTES)] * 2)


def choose_tiles(form: Contraction, target: Target) -> Tile | None:
    """A block of tiles, in vectors of 16 sums; None where the matrix unit is no faster than `dot4`."""
    found = bytes_of(form)
    if not target.has_tiles or found is None or form.m is None or form.inside:
        return None
    if not is_direct(form, found) and len(apart(form)) > MOST_APART:
        return None
    faster = cycles_of_tiles(form, found) < cycles_of_dot4(form, target)
    return Tile(Shape.of(form).rows, min(2, -(-form.n.extent // LANES))) if faster else None


def cycles_of_tiles(form: Contraction, found: Bytes) -> float:
    """Cycles for all rows and columns: a product takes as long as a has rows, a tile half a cycle for each row it loads."""
    shape = Shape.of(form)
    blocks, wide = -(-form.rows // shape.rows), -(-form.n.extent // (2 * LANES))
    loads = shape.rows + 2 * (shape.step // GROUP)
    step = max(2 * shape.rows, loads / 1.5)
    staging = 0.0 if is_direct(form, found) else shape.rows * shape.depth / TILE_BYTES * 2
    return SET_UP_CYCLES + blocks * (wide * (shape.count * step + 4 * shape.rows + BLOCK_CYCLES) + staging)


def cycles_of_dot4(form: Contraction, target: Target) -> float:
    tile = choose_tile(form.rows, form.n.extent, LANES, target, False)
    step = sum(t.count * steps(tile.rows, -(-t.size // LANES), target) for t in panels(form.n.extent, LANES, tile))
    staging = form.rows * form.depth / TILE_BYTES * 2
    return -(-form.rows // tile.rows) * step * -(-form.depth // GROUP) * 1.1 + staging


def is_direct(form: Contraction, found: Bytes) -> bool:
    """Whether tiles can be loaded from a where it lies: K is one run, nothing is left out, no sums of rows are needed, and rows
    do not fall into the same few sets of the cache."""
    axes, x = form.reduce.axes, found.x
    if form.reduce.where or found.of_y or len(run_of(x, axes, ())) < len(axes) or form.m is None or (
            form.m in x.index[0].hidden):
        return False
    stride = x.index[0].coefficient(form.m)
    if form.depth < TILE_BYTES:
        return stride > 0 and form.depth % GROUP == 0
    whole = form.depth % TILE_BYTES == 0 or is_constant(found.y)
    return stride > 0 and whole and stride % SET_BYTES != 0


def is_plain(form: Contraction, found: Bytes, known: Expr) -> bool:
    """Whether sums are outputs, and whole tiles of them."""
    nest, m = form.nest, form.m
    straight = m is not None and m not in nest.index.hidden and nest.index.coefficient(m) > 0
    return nest.value is known and straight and not found.of_y and form.n.extent % LANES == 0


# ---- how rows and columns are cut ------------------------------------------------------------------------------------
def apart(form: Contraction) -> list[int]:
    """Starts of blocks of which some rows meet conditions, and some do not."""
    assert form.m
    rows = Shape.of(form).rows
    low, high = interior(form.m, Conditions.of(form.reduce, form.m, form.n).rows)
    return [s for s in starts(form.rows, rows) if not low <= s <= high - rows]


def starts(extent: int, rows: int) -> list[int]:
    """Where blocks begin; the last one ends with the axis."""
    return [*range(0, extent - rows, rows), extent - rows]


def lines(form: Contraction, rows: int) -> list[Tiles]:
    """Blocks of rows: those that meet conditions each on their own."""
    alone, result = set(apart(form)), list[Tiles]()
    for start in starts(form.rows, rows):
        last = result[-1] if result else None
        if last and start not in alone and last.start not in alone and start == last.start + last.count * rows:
            result[-1] = Tiles(last.start, rows, last.count + 1)
        else:
            result.append(Tiles(start, rows, 1))
    return result


def columns(extent: int, width: int) -> Cut:
    """Panels of so many columns, then what is left."""
    return [(t, tuple(Piece(s, LANES, min(LANES, t.size - s)) for s in range(0, t.size, LANES)))
            for t in chunks(extent, width)]


def narrow(cut: Cut) -> Cut:
    """Panels of one tile, as they are packed."""
    return columns(sum(t.size * t.count for t, _ in cut), LANES)


def groups(form: Contraction, shape: Shape, cut: Cut, target: Target) -> list[tuple[Tiles, Cut]]:
    """The columns in groups that stay in the second-level cache, and the panels of a group."""
    (whole, vectors), *rest = cut
    most = max(1, target.block_bytes // 2 // (whole.size * shape.depth))
    if whole.count <= most:
        return [(Tiles(0, form.n.extent, 1), cut)]
    each = -(-whole.count // -(-whole.count // most))
    result: list[tuple[Tiles, Cut]] = [
        (Tiles(t.start * whole.size, t.size * whole.size, t.count), [(Tiles(0, whole.size, t.size), vectors)])
        for t in chunks(whole.count, each)]
    return result + [(t, [(Tiles(0, t.size, 1), pieces)]) for t, pieces in rest]
