"""The lower bound is never above the optimum, and where that can be known it is the optimum."""
from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from tosaic.lowering.memory.algorithms.cliques import adjacency, clique_cover, heavy_cliques, members
from tosaic.lowering.memory.algorithms.instance import Instance
from tosaic.lowering.memory.algorithms.lower_bound import lower_bound, memory_pressure
from tosaic.lowering.memory.buffers import BufferInfo, symmetric, with_conflicts

from .brute_force import optimum
from .instances import SHAPES, cut, pinwheels
from .test_exact import graph, intervals


def test_the_bound_is_never_above_the_optimum_and_mostly_equal() -> None:
    equal = 0
    for seed in range(750):
        draw = random.Random(seed)
        buffers = (intervals if seed % 2 else graph)(draw, 6)
        if seed % 5 == 0:
            buffers = tuple(dataclasses.replace(b, live=None) for b in buffers)
        bound, best = lower_bound(buffers), optimum(buffers)
        assert bound <= best, f"seed {seed}"
        equal += bound == best
    assert equal > 650


@pytest.mark.parametrize("sizes, bound", [
    ([(120, 64), (128, 64), (32, 32), (120, 64), (128, 64)], 544),  # whichever is on top, 512 lie below it
    ([(1, 64), (10, 64), (60, 64), (5, 16)], 129), ([(100, 1)], 100), ([(100, 64), (100, 64)], 228), ([(3, 4), (5, 4)], 9)])
def test_padding_that_no_order_avoids_counts(sizes: list[tuple[int, int]], bound: int) -> None:
    buffers = with_conflicts([BufferInfo(f"b{i}", *size, live=((0, 0),)) for i, size in enumerate(sizes)])
    assert lower_bound(buffers) == bound == optimum(buffers)
    bare = [dataclasses.replace(b, live=None) for b in buffers]
    assert lower_bound(bare) == bound


def test_three_that_conflict_at_different_ticks_count_together() -> None:
    buffers = with_conflicts([BufferInfo("a", 10, live=((0, 5),)), BufferInfo("b", 10, live=((4, 9),)),
                              BufferInfo("c", 10, live=((1, 1), (8, 8)))])
    assert lower_bound(buffers) == 30 == optimum(buffers)


def test_the_bound_of_an_arena_cut_to_pieces_is_its_height() -> None:
    for seed in range(5):
        assert lower_bound(cut(seed, 80)) == 1024 * 16 and lower_bound(pinwheels(seed, 20)) == 4096


def test_the_bound_does_not_depend_on_the_order_of_the_buffers() -> None:
    for make in SHAPES.values():
        buffers = make(1)
        bare = [dataclasses.replace(b, live=None) for b in buffers]
        for seed in range(2):
            shuffled = random.Random(seed).sample(range(len(buffers)), len(buffers))
            assert lower_bound([buffers[i] for i in shuffled]) == lower_bound(buffers)
            assert lower_bound([bare[i] for i in shuffled]) == lower_bound(bare)


def test_the_pressure_is_what_is_live_together_without_padding() -> None:
    buffers = with_conflicts([BufferInfo(f"b{i}", 10, 64, live=((i, i + 2),)) for i in range(9)])
    assert memory_pressure(buffers) == 30 < lower_bound(buffers) == 138
    assert memory_pressure([]) == lower_bound([]) == 0


# ---- cliques ---------------------------------------------------------------------------------------------------------
def adjacency_of(buffers: tuple[BufferInfo, ...]) -> list[int]:
    instance = Instance.of(buffers)
    return adjacency(instance.conflicts.start.tolist(), instance.conflicts.items.tolist())


def is_clique(near: list[int], numbers: list[int]) -> bool:
    return all(near[a] >> b & 1 for a, b in itertools.permutations(numbers, 2))


def test_the_heaviest_clique_is_found() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        near = adjacency_of(graph(draw, 10))
        weights = [draw.randint(1, 20) for _ in near]
        best = max(sum(weights[i] for i in some) for count in range(len(near) + 1)
                   for some in itertools.combinations(range(len(near)), count) if is_clique(near, list(some)))
        found = [members(clique) for clique in heavy_cliques(near, weights, 2, 10_000)]
        assert all(is_clique(near, clique) for clique in found) and sum(weights[i] for i in found[0]) == best


def test_a_cover_by_cliques_has_every_conflict_and_every_buffer() -> None:
    for seed in range(100):
        draw = random.Random(seed)
        near = adjacency_of(graph(draw, 14))
        hints = [draw.sample(range(len(near)), draw.randint(0, len(near))) for _ in range(draw.randint(0, 4))]
        cover = [members(clique) for clique in clique_cover(near, hints)]
        assert all(is_clique(near, clique) for clique in cover)
        edges = {(i, j) for i, bits in enumerate(near) for j in members(bits)}
        assert {pair for clique in cover for pair in itertools.permutations(clique, 2)} == edges
        assert {i for clique in cover for i in clique} == set(range(len(near)))


def test_a_dense_graph_of_many_buffers_takes_no_deep_recursion() -> None:
    names = frozenset(f"b{i}" for i in range(400))
    buffers = symmetric([BufferInfo(name, 8, conflicts=names) for name in sorted(names)])
    assert lower_bound(buffers) == 3200
