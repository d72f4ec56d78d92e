"""Loads of elements that are not neighbours in the order of the lanes."""
from __future__ import annotations

from ...elements.affine import Affine
from ...elements.expression import Buffer
from ...loops.builder import Builder
from ...loops.ir import Operand

MAX_SHUFFLED_STRIDE = 4
"""Elements further apart than this are not put together from vectors."""


def spread(b: Builder, buffer: Buffer, i: Affine, stride: int, lanes: int, active: int) -> Operand | None:
    """buffer[i + stride * lane] for a small stride: the vectors that cover them, put in order by shuffles. Nothing
    outside the first and the last element is read. None where that is not worth it."""
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
    result, holds = vectors[0], list(range(lanes))  # which element each lane has so far
    for s, vector in zip(starts[1:], vectors[1:]):
        place = {element: n for n, element in reversed(list(enumerate(holds)))}
        chosen = [n if holds[n] == w else lanes + w - s if s <= w < s + lanes else place.get(w, n)
                  for n, w in enumerate(wanted)]
        result = b.shuffle(result, vector, tuple(chosen))
        holds = [holds[c] if c < lanes else s + c - lanes for c in chosen]
    return result


def gathered(b: Builder, buffer: Buffer, i: Affine, stride: int, lanes: int, active: int) -> Operand:
    """Lane by lane, then pairs joined: slow, always right."""
    vectors: list[Operand] = [b.load(buffer, i + min(n, active - 1) * stride) for n in range(lanes)]
    while len(vectors) > 1:
        both = tuple(range(2 * vectors[0].type.lanes))
        vectors = [b.shuffle(x, y, both) for x, y in zip(vectors[::2], vectors[1::2])]
    return vectors[0]
