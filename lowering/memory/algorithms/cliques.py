"""Sets of buffers that all conflict: a family that has every conflict in some set, and the heaviest set. Sets of numbers
are bits of an integer here.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def members(bits: int) -> list[int]:
    """The numbers in a set, ascending."""
    return list(each(bits))


def each(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def adjacency(start: Sequence[int], items: Sequence[int]) -> list[int]:
    """The neighbours of each number as a set, from rows of neighbours."""
    return [as_set(items[start[i]:start[i + 1]]) for i in range(len(start) - 1)]


def as_set(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def clique_cover(near: Sequence[int], hints: Sequence[Sequence[int]] = ()) -> list[int]:
    """Cliques such that every edge lies in one, and every number too. Each of `hints` is a set that is probably a clique;
    what they give comes first, and in their order."""
    open_ = list(near)
    found: list[int] = []

    def cover(inside: int) -> None:
        for i in each(inside):
            while open_[i] & inside:
                clique = grown(near, 1 << i, inside & near[i], open_[i])
                found.append(clique)
                for j in each(clique):
                    open_[j] &= ~clique

    for hint in hints:
        cover(as_set(hint))
    cover(as_set(range(len(near))))
    covered = 0
    for clique in found:
        covered |= clique
    return found + [1 << i for i in range(len(near)) if not covered >> i & 1]


def grown(near: Sequence[int], clique: int, candidates: int, wanted: int) -> int:
    """A clique that cannot grow within `candidates`, with `wanted` numbers before others."""
    while candidates:
        first = candidates & wanted or candidates
        i = (first & -first).bit_length() - 1
        clique |= 1 << i
        candidates &= near[i]
    return clique


def heavy_cliques(near: Sequence[int], weights: Sequence[int], seeds_tried: int, visits: int) -> list[int]:
    """Cliques of large sums of weights, grown around the `seeds_tried` numbers with the heaviest neighbours; the first is the
    heaviest of all, if branch and bound ends within `visits` visits."""
    crowd = [weights[i] + sum(weights[j] for j in each(bits)) for i, bits in enumerate(near)]
    heavy = sorted(range(len(near)), key=lambda i: (-weights[i], -crowd[i], i))
    seeds = sorted(range(len(near)), key=lambda i: (-crowd[i], i))
    found = list(dict.fromkeys(greedy_clique(near, heavy, i) for i in seeds[:seeds_tried]))
    best = max(found, key=lambda clique: weight_of(clique, weights), default=0)
    heaviest = weight_of(best, weights)
    stack = [(0, 0, *in_classes(near, weights, seeds))]
    while stack and visits > 0:
        clique, weight, order, bounds = stack[-1]
        if not order or weight + bounds[-1] <= heaviest:
            stack.pop()
            continue
        i = order.pop()
        bounds.pop()
        clique, weight, visits = clique | 1 << i, weight + weights[i], visits - len(order) - 1
        if weight > heaviest:
            best, heaviest = clique, weight
        stack.append((clique, weight, *in_classes(near, weights, [j for j in order if near[i] >> j & 1])))
    return [best, *found]


def weight_of(clique: int, weights: Sequence[int]) -> int:
    return sum(weights[i] for i in each(clique))


def greedy_clique(near: Sequence[int], order: Sequence[int], seed: int) -> int:
    """A clique around a number: always the first in `order` that conflicts with all before."""
    clique, candidates = 1 << seed, near[seed]
    for i in order:
        if candidates >> i & 1:
            clique |= 1 << i
            candidates &= near[i]
    return clique


def in_classes(near: Sequence[int], weights: Sequence[int], candidates: Sequence[int]) -> tuple[list[int], list[int]]:
    """The candidates in an order, and for each the most that a clique of it and the ones before can weigh: one from each
    class of numbers that are no neighbours of one another."""
    order: list[int] = []
    bounds: list[int] = []
    total, rest = 0, list(candidates)
    while rest:
        taken, ours, later = 0, [], []
        for i in rest:
            if taken >> i & 1:
                later.append(i)
            else:
                ours.append(i)
                taken |= near[i]
        ours.sort(key=lambda i: (weights[i], i))
        order += ours
        bounds += [total + weights[i] for i in ours]
        total, rest = bounds[-1], later
    return order, bounds
