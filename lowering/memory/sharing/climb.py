"""A search for small plans in which buffers share bytes: first fit, in an order that is changed a little, again and again,
and kept where that is no worse. For one pool; random, but the same every time.
"""
from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from ..buffers import BufferInfo
from .occupancy import Spacing

MAX_USELESS_CHANGES = 400
"""The search ends after this number of changes without a smaller plan. Chosen."""


class Climb:
    """First fit of these buffers; `spacings` says of a pair which distances are not allowed, both ways round; others that
    conflict share no byte."""

    def __init__(self, buffers: Sequence[BufferInfo], spacings: Mapping[tuple[str, str], Spacing]) -> None:
        number = {b.name: i for i, b in enumerate(buffers)}
        self.sizes = [b.size_bytes for b in buffers]
        self.alignments = [b.alignment for b in buffers]
        self.refused: list[list[tuple[int, Spacing]]] = []
        for b in buffers:
            mine = [(number[name], spacings.get((name, b.name))) for name in sorted(b.conflicts) if name in number]
            self.refused.append([(i, ((-b.size_bytes, self.sizes[i]),) if s is None else s) for i, s in mine])

    def fit(self, order: Sequence[int], most: int, known: Sequence[int] = (), kept: int = 0) -> tuple[int, list[int]] | None:
        """The size and the offsets of a plan; None where it takes more than `most` bytes. The first `kept` of the order lie
        where they do in `known`, the offsets of a plan that begins alike."""
        offsets, size = [-1] * len(self.sizes), 0
        for i in order[:kept]:
            offsets[i] = known[i]
            size = max(size, known[i] + self.sizes[i])
        for i in order[kept:]:
            taken = sorted([(start + low, start + high) for j, spacing in self.refused[i] if (start := offsets[j]) >= 0
                            for low, high in spacing])
            offset, alignment = 0, self.alignments[i]
            for low, high in taken:
                if offset <= low:
                    break
                if offset < high:
                    offset = -(-high // alignment) * alignment
            end = offset + self.sizes[i]
            if end > most:
                return None
            offsets[i] = offset
            size = max(size, end)
        return size, offsets

    def search(self, order: Sequence[int], size: int, bound: int, effort: int = 1) -> list[int] | None:
        """The offsets of a plan of less than `size` bytes, if one is found before too many changes have not helped. An order
        leads to a plan of that size."""
        rng, best, found = random.Random(len(order)), list(order), None
        left, known = effort * MAX_USELESS_CHANGES, list[int]()
        while size > bound and left > 0:
            tried, kept = list(best), len(best) if known else 0
            for _ in range(rng.choice((1, 1, 2, 3))):
                to, source = rng.randrange(len(tried)), rng.randrange(len(tried))
                tried.insert(to, tried.pop(source))
                kept = min(kept, to, source)
            plan = self.fit(tried, size, known, kept)
            left -= 1
            if plan is not None:
                best, known = tried, plan[1]
                if plan[0] < size:
                    size, found = plan
                    left = effort * MAX_USELESS_CHANGES
        return found
