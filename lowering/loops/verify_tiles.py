"""Checks statements of a matrix unit: tiles that there are, shapes that fit each other. Part of `verify`."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...runtime.records import dataclass
from ..graph.types import ITEM_SIZES
from .ir import (
    MAX_TILES,
    TILE_BYTES,
    TILE_ROWS,
    LoadTile,
    MultiplyFloatTiles,
    MultiplyTiles,
    ShapeTiles,
    StoreTile,
    TileAccess,
    Type,
    ZeroTile,
)

if TYPE_CHECKING:
    from .verify import Verifier

ELEMENTS = frozenset({"int8", "uint8", "int32", "bfloat16", "float32"})
"""What rows of tiles are made of."""


def shapes_fault(stmt: ShapeTiles) -> str | None:
    if not 1 <= len(stmt.shapes) <= MAX_TILES:
        return f"{len(stmt.shapes)} tiles get shapes, of {MAX_TILES}"
    for rows, nbytes in stmt.shapes:
        if not 1 <= rows <= TILE_ROWS or not 1 <= nbytes <= TILE_BYTES or nbytes % 4:
            return f"no tile has {rows} rows of {nbytes} bytes"
    return None


@dataclass(frozen=True, slots=True)
class Tiles:
    """The shapes that tiles have; none before they are given."""
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
        """Elements from the first to the last of a tile in memory."""
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


# ---- the rules of statements -----------------------------------------------------------------------------------------
def shape_tiles(v: Verifier, stmt: ShapeTiles) -> None:
    refuse(v, "tiles get their shapes inside of a block" if v.depth else shapes_fault(stmt))
    v.tiles = Tiles(stmt.shapes)


def zero_tile(v: Verifier, stmt: ZeroTile) -> None:
    refuse(v, v.tiles.missing(stmt.tile))


def multiply_tiles(v: Verifier, stmt: MultiplyTiles | MultiplyFloatTiles) -> None:
    refuse(v, v.tiles.product_fault(stmt))


def move_tile(v: Verifier, stmt: TileAccess) -> None:
    buffer = stmt.address.buffer
    refuse(v, v.tiles.access_fault(stmt))
    v.index(stmt.address.base)
    v.access(buffer, Type(buffer.dtype), "read" if isinstance(stmt, LoadTile) else "written")
    v.place(stmt.address, 1, v.tiles.span(stmt), None)


def refuse(v: Verifier, fault: str | None) -> None:
    if fault is not None:
        v.fail(fault)


TILE_RULES: dict[type, Callable[[Verifier, Any], None]] = {
    ShapeTiles: shape_tiles, ZeroTile: zero_tile, MultiplyTiles: multiply_tiles,
    MultiplyFloatTiles: multiply_tiles, LoadTile: move_tile, StoreTile: move_tile,
}
