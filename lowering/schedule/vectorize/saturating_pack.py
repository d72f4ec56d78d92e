"""Saturating packs to int8: two or four vectors of int32 become one vector of bytes, by instructions that clip, where a clamp
and a cast would take several instructions for each vector. This is the end of a RESCALE to i8. `write` uses packs to store
tiles of outputs.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...elements.expression import Apply, Cast, Const, Expr
from ...loops.builder import Builder
from ...loops.ir import Operand, Type
from ...target.target import Target
from ..nest.loop_nest import Nest
from ..nest.tile_axis import Piece

GROUP_BYTES = 16
"""Bytes of the groups within which packing works."""
WORD_BYTES = 4
"""Bytes of an int32, and bytes that one vector contributes to a group when four are packed."""
PACKED_VECTORS = (4, 2)
"""Numbers of int32 vectors that are packed to one."""
INT8_RANGE = (-128, 127)


def unclipped(value: Expr) -> Expr | None:
    """Return the int32 that packing turns into `value`, a clipped int8; None if `value` is something else."""
    match value:
        case Cast(Apply("min", (Apply("max", (x, Const(low))), Const(high))) as clipped, "int8", False) if (
                clipped.dtype == "int32" and low >= INT8_RANGE[0] and high <= INT8_RANGE[1]):
            return x if (low, high) == INT8_RANGE else clipped
    return None


def packable(nest: Nest, target: Target) -> Expr | None:
    """Return the int32 from which the outputs of a nest are packed; None if they are not or the target packs no vectors."""
    return unclipped(nest.value) if target.packs else None


def units(pieces: Sequence[Piece], lanes: int) -> list[tuple[Piece, ...]]:
    """Return groups of vectors that are stored at once: four or two full neighbours of `lanes` lanes, else one vector."""
    result: list[tuple[Piece, ...]] = []
    rest = list(pieces)
    while rest:
        count = next((n for n in PACKED_VECTORS if are_neighbours(rest[:n], n, lanes)), 1)
        result.append(tuple(rest[:count]))
        del rest[:count]
    return result


def are_neighbours(found: Sequence[Piece], count: int, lanes: int) -> bool:
    return len(found) == count and all(p.lanes == p.active == lanes and p.start == found[0].start + i * lanes
                                       for i, p in enumerate(found))


def pack(b: Builder, vectors: Sequence[Operand]) -> Operand:
    """Return two or four vectors of int32 as int8, clipped, in order."""
    lanes, count = vectors[0].type.lanes, len(vectors)
    halves = [b.op("pack", x, y, type=Type("int16", 2 * lanes)) for x, y in zip(vectors[::2], vectors[1::2])]
    packed = b.op("pack", halves[0], halves[-1], type=Type("int8", 4 * lanes))
    groups = lanes // WORD_BYTES
    if groups == 1 and count == PACKED_VECTORS[0]:
        return packed
    words = b.op("bits", packed, type=Type("int32", lanes))
    order = tuple(group * WORD_BYTES + v for v in range(count) for group in range(groups))
    return b.op("bits", b.shuffle(words, words, order), type=Type("int8", count * lanes))
