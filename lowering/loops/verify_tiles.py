"""Checks of matrix unit statements for `verify`: tiles that do not exist, and shapes that do not match."""
from __future__ import annotations

from ...runtime.records import dataclass
from ..graph.types import ITEM_SIZES
from .ir import (
    MAX_TILES,
    TILE_BYTES,
    TILE_ROWS,
    MultiplyFloatTiles,
    MultiplyTiles,
    ShapeTiles,
    TileAccess,
)

ELEMENTS = frozenset({"int8", "uint8", "int32", "bfloat16", "float32"})
"""Element types of the rows of a tile."""


def shapes_fault(stmt: ShapeTiles) -> str | None:
    if not 1 <= len(stmt.shapes) <= MAX_TILES:
        return f"{len(stmt.shapes)} tiles get shapes, of {MAX_TILES}"
    for rows, nbytes in stmt.shapes:
        if not 1 <= rows <= TILE_ROWS or not 1 <= nbytes <= TILE_BYTES or nbytes % 4:
            return f"no tile has {rows} rows of {nbytes} bytes"
    return None


@dataclass(frozen=True, slots=True)
class TileShapes:
    """The shapes of the tiles; none before a statement sets them."""
    shapes: tuple[tuple[int, int], ...] = ()

    def missing(self, *tiles: int) -> str | None:
        return next((f"tile {t} has no shape" for t in tiles if not 0 <= t < len(self.shapes)), None)

    def access_fault(self, stmt: TileAccess) -> str | None:
        buffer = stmt.address.buffer
        if fault := self.missing(stmt.tile):
            return fault
        if buffer.dtype not in ELEMENTS:
            return f"a tile is moved to or from {buffer!r}"
        return f"rows of a tile are {stmt.stride} elements apart" if stmt.stride < 0 else None

    def span(self, stmt: TileAccess) -> int:
        """Return the number of elements from the first to the last of a tile in memory."""
        rows, nbytes = self.shapes[stmt.tile]
        return (rows - 1) * stmt.stride + nbytes // ITEM_SIZES[stmt.address.buffer.dtype]

    def product_fault(self, stmt: MultiplyTiles | MultiplyFloatTiles) -> str | None:
        if fault := self.missing(stmt.total, stmt.x, stmt.y):
            return fault
        if len({stmt.total, stmt.x, stmt.y}) < 3:
            return "a product of tiles takes three of them"
        (rows, width), (high, depth), (fours, wide) = (self.shapes[t] for t in (stmt.total, stmt.x, stmt.y))
        fits = rows == high and width == wide and depth == 4 * fours
        return None if fits else f"tiles of {high} x {depth} and {fours} x {wide} make none of {rows} x {width}"
