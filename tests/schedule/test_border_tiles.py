"""How the rows of a contraction are cut at the border, and how panels are taken together for single rows."""
from __future__ import annotations

import random

import numpy as np
import pytest
import tosaic
from tosaic.lowering.schedule.code_size_model import TileCode
from tosaic.lowering.schedule.contraction.border_tiles import MAX_ROW_VECTORS, grouped, grouped_panels, heights
from tosaic.lowering.schedule.contraction.register_tile import Tile, panels
from tosaic.lowering.schedule.nest.tile_axis import Cut, Piece, Tiles, pieces
from tosaic.lowering.target.presets import target

WIDE = target("x86-64-v4")


def columns(count: int, tile: Tile) -> Cut:
    return [(t, pieces(t.size, 16, True)) for t in panels(count, 16, tile)]


def rows_of(tiles: list[Tiles]) -> list[int]:
    return sorted(t.start + i for t in tiles for i in range(t.size * t.count))


def test_border_rows_go_one_by_one_where_that_takes_little_longer() -> None:
    tile = Tile(14, 2)
    cut = grouped_panels(columns(128, tile))
    first, inside, last = heights(128, (1, 127), tile, False, cut, 2000, WIDE, code=TileCode(2000, 0, 2, taps=3))
    assert (first, last, inside.size * inside.count) == (Tiles(0, 1, 1), Tiles(127, 1, 1), 126)


def test_border_rows_stay_in_their_tiles_where_there_is_work_enough_for_the_code() -> None:
    tile, passes = Tile(14, 2), 64 * 9 * 256
    tiles = heights(14, (1, 13), tile, False, columns(256, tile), passes, WIDE, code=TileCode(passes, 0, 2, taps=3, last=256))
    assert tiles == [Tiles(0, 14, 1)]


def test_border_rows_stay_in_their_tiles_where_they_would_take_much_longer() -> None:
    tile = Tile(10, 1)
    assert heights(10, (1, 9), tile, False, columns(16, tile), 10**6, WIDE) == [Tiles(0, 10, 1)]


def test_border_rows_of_a_small_contraction_go_one_by_one_in_any_case() -> None:
    tile = Tile(10, 1)
    tiles = heights(10, (1, 9), tile, False, columns(16, tile), 10, WIDE)
    assert tiles == [Tiles(0, 1, 1), Tiles(1, 8, 1), Tiles(9, 1, 1)]


@pytest.mark.parametrize("seed", range(25))
def test_every_row_is_in_one_tile(seed: int) -> None:
    r = random.Random(seed)
    extent, tile = r.randint(1, 200), Tile(r.randint(1, 14), r.randint(1, 4))
    low = r.randint(0, extent)
    inside = low, r.randint(low, extent)
    tiles = heights(extent, inside, tile, r.random() < 0.3, columns(r.randint(1, 300), tile), 10 ** r.randint(0, 7), WIDE)
    assert rows_of(tiles) == list(range(extent))
    assert all(t.size <= tile.rows for t in tiles)


def test_panels_of_few_vectors_are_taken_together() -> None:
    t, vectors = grouped(Tiles(0, 32, 4), (Piece(0, 16, 16), Piece(16, 16, 16)))
    assert t == Tiles(0, 128, 1)
    assert [p.start for p in vectors] == [0, 16, 32, 48, 64, 80, 96, 112]


@pytest.mark.parametrize("columns_", [1, 16, 17, 48, 64, 100, 128, 320])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_columns_taken_together_are_the_same_columns(columns_: int, width: int) -> None:
    def lanes(cut: Cut) -> list[int]:
        return [t.start + i * t.size + p.start + lane for t, vectors in cut for i in range(t.count) for p in vectors
                for lane in range(p.active)]

    cut = columns(columns_, Tile(4, width))
    wide = grouped_panels(cut)
    assert lanes(wide) == lanes(cut) == list(range(columns_))
    assert all(len(vectors) <= max(MAX_ROW_VECTORS, width) for _, vectors in wide)


@pytest.mark.parametrize("element", ["f32", "i8"])
@pytest.mark.parametrize("filters", [8, 48, 128])
def test_a_convolution_with_a_border_is_right(element: str, filters: int) -> None:
    """Rows at the border by several panels at a time, against the interpreter."""
    x, out = f"tensor<1x6x40x5x{element}>", "f32" if element == "f32" else "i32"
    w, y = f"tensor<{filters}x3x3x5x{element}>", f"tensor<1x6x40x{filters}x{out}>"
    b, z = f"tensor<{filters}x{out}>", f"tensor<1x{element}>"
    zero = "0.0" if element == "f32" else "0"
    text = f"""func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {{
  %z = "tosa.const"() <{{values = dense<{zero}> : {z}}}> : () -> {z}
  %r = "tosa.conv2d"(%x, %w, %b, %z, %z) <{{pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>,
    dilation = array<i64: 1, 1>, acc_type = {out}, local_bound = false}}> : ({x}, {w}, {b}, {z}, {z}) -> {y}
  return %r : {y}
}}"""
    rng = np.random.default_rng(filters)
    shapes = (1, 6, 40, 5), (filters, 3, 3, 5), (filters,)
    arrays = [rng.integers(-9, 9, s).astype("float32" if element == "f32" else "int32" if i == 2 else "int8")
              for i, s in enumerate(shapes)]
    check = tosaic.load(text).main.trace().check([arrays])
    assert check.agrees, check
