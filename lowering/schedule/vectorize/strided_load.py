"""Loads whose lanes are not consecutive elements."""
from __future__ import annotations

from ...elements.affine import Affine
from ...elements.expression import Buffer
from ...loops.builder import Builder
from ...loops.ir import Operand

MAX_SHUFFLED_STRIDE = 4
"""Maximum stride, in elements, of a strided load that is made of vector loads and shuffles."""


def spread(b: Builder, buffer: Buffer, i: Affine, stride: int, lanes: int, active: int) -> Operand | None:
    """Load buffer[i + stride * lane] for a small stride by vector loads that cover the elements, and shuffles. Read nothing
    before the first or after the last element. Return None if the stride is too large."""
    span = abs(stride) * (active - 1) + 1
    if abs(stride) > MAX_SHUFFLED_STRIDE:
        return None
    first = i if stride > 0 else i + stride * (active - 1)
    starts = [*range(0, span - lanes + 1, lanes)]
    if span % lanes:
        starts.append(max(0, span - lanes))
    vectors = [b.load(buffer, first + s, lanes, min(lanes, span)) for s in starts]
    wanted = [abs(stride) * (n if stride > 0 else active - 1 - n) if n < active else 0 for n in range(lanes)]
    if len(vectors) == 1:
        return b.shuffle(vectors[0], vectors[0], tuple(wanted))
    result, holds = vectors[0], list(range(lanes))  # the element that each lane holds so far
    for s, vector in zip(starts[1:], vectors[1:]):
        place = {element: n for n, element in reversed(list(enumerate(holds)))}
        chosen = [n if holds[n] == w else lanes + w - s if s <= w < s + lanes else place.get(w, n)
                  for n, w in enumerate(wanted)]
        result = b.shuffle(result, vector, tuple(chosen))
        holds = [holds[c] if c < lanes else s + c - lanes for c in chosen]
    return result


def gathered(b: Builder, buffer: Buffer, i: Affine, stride: int, lanes: int, active: int) -> Operand:
    """Load lane by lane, then join pairs: slow, but always correct."""
    vectors: list[Operand] = [b.load(buffer, i + min(n, active - 1) * stride) for n in range(lanes)]
    while len(vectors) > 1:
        both = tuple(range(2 * vectors[0].type.lanes))
        vectors = [b.shuffle(x, y, both) for x, y in zip(vectors[::2], vectors[1::2])]
    return vectors[0]
