"""How axes are cut: every element once, vectors that end where the axis ends, interiors where conditions hold."""
from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.schedule.nest.tile_axis import Tiles, balanced, breaks, chunks, interior, peel, pieces

EXTENTS = st.integers(1, 300)


def elements(tiles: list[Tiles]) -> list[int]:
    return [t.start + i for t in tiles for i in range(t.size * t.count)]


@given(EXTENTS, st.integers(1, 64))
def test_tiles_cover_an_axis_once(extent: int, size: int) -> None:
    for tiles in (balanced(extent, size), chunks(extent, size)):
        assert elements(tiles) == list(range(extent))
        assert max(t.size for t in tiles) <= size


@given(EXTENTS, st.integers(1, 64))
def test_balanced_tiles_differ_by_one_at_most(extent: int, size: int) -> None:
    sizes = [t.size for t in balanced(extent, size)]
    assert max(sizes) - min(sizes) <= 1


@given(EXTENTS, st.sampled_from([1, 2, 4, 8, 16, 64]), st.booleans(), st.sampled_from([1, 4]))
def test_pieces_cover_a_tile_once(size: int, lanes: int, masked: bool, least: int) -> None:
    parts = pieces(size, lanes, masked, min(least, lanes))
    assert [p.start + i for p in parts for i in range(p.active)] == list(range(size))
    assert all(p.lanes <= lanes and p.lanes & (p.lanes - 1) == 0 for p in parts)
    if not masked and least == 1:
        assert all(p.active == p.lanes for p in parts)


@given(EXTENTS, st.integers(1, 40), st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_a_peeled_tile_is_wholly_inside_or_at_a_constant_place(extent: int, size: int, low: int, high: int, single: bool
                                                               ) -> None:
    low, high = min(low, extent), min(max(low, high), extent)
    tiles = peel(balanced(extent, size), low, high, single)
    assert sorted(elements(tiles)) == list(range(extent))
    for t in tiles:
        inside = low <= t.start and t.start + t.size * t.count <= high
        assert inside or t.count == 1 or t.size == 1


CONDITIONS = st.tuples(st.integers(-3, 3), st.integers(-2, 2), st.integers(-5, 5), st.integers(-9, 9), st.integers(1, 30))


@given(st.integers(1, 40), CONDITIONS)
def test_conditions_hold_in_the_interior_and_nowhere_else(extent: int, numbers: tuple[int, ...]) -> None:
    c, d, const, low, width = numbers
    axis, other = Axis("a", extent), Axis("b", 4)
    r = Range(Affine.of(axis) * c + Affine.of(other) * d + const, low, low + width)
    first, end = interior(axis, [r])
    inside = [all(low <= c * a + d * b + const < low + width for b in range(4)) for a in range(extent)]
    if r.index.coefficient(axis):
        assert [first <= a < end for a in range(extent)] == inside


@given(st.integers(1, 40), st.integers(-3, 3).filter(bool), st.integers(-9, 9), st.integers(-20, 20), st.integers(1, 30))
def test_a_condition_on_one_axis_changes_at_breaks_only(extent: int, c: int, const: int, low: int, width: int) -> None:
    axis = Axis("a", extent)
    cuts = breaks(axis, [Range(Affine.of(axis) * c + const, low, low + width)])
    assert (cuts[0] == 0 and cuts[-1] == extent) or extent == 1
    holds = [low <= c * a + const < low + width for a in range(extent)]
    for start, end in itertools.pairwise(cuts):
        assert len(set(holds[start:end])) == 1
