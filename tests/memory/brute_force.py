"""The optimum of small planning problems, by trying everything: what the algorithms are held against. It shares no code with
them.
"""
from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tosaic.lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo

Plan = Mapping[str, PoolAllocation]


def optimum(buffers: Sequence[BufferInfo]) -> int:
    """The least arena: some order, each buffer on top of the conflicting ones before it, gives it."""
    best = sum(b.size_bytes + b.alignment for b in buffers)

    def go(left: Sequence[BufferInfo], tops: dict[str, int], size: int) -> None:
        nonlocal best
        if size >= best:
            return
        if not left:
            best = size
        for i, b in enumerate(left):
            offset = max((tops[name] for name in b.conflicts if name in tops), default=0)
            top = (offset + b.alignment - 1) // b.alignment * b.alignment + b.size_bytes
            go([*left[:i], *left[i + 1:]], {**tops, b.name: top}, max(size, top))

    go([b for b in buffers if b.size_bytes], {}, 0)
    return best


def cheapest(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> tuple[int, list[int]] | None:
    """The least cost of an assignment to pools (bytes moved times the place of the pool among the candidates), and the least
    sizes that it can have, the last pool first; None where nothing fits."""
    known: dict[frozenset[str], int] = {}

    def size(inside: Sequence[BufferInfo]) -> int:
        key = frozenset(b.name for b in inside)
        if key not in known:
            known[key] = optimum(inside)
        return known[key]

    best: tuple[int, list[int]] | None = None
    for choice in itertools.product(*(list(enumerate(b.candidates(pools))) for b in buffers)):
        cost = sum(moved(b) * place for b, (place, _) in zip(buffers, choice))
        if best is None or cost <= best[0]:
            sizes = [size([b for b, (_, p) in zip(buffers, choice) if p is pool]) for pool in pools]
            if all(p.size_hint_bytes is None or s <= p.size_hint_bytes for s, p in zip(sizes, pools)):
                best = min(best or (cost, sizes[::-1]), (cost, sizes[::-1]))
    return best


def moved(b: BufferInfo) -> int:
    """Bytes that a run reads and writes of a buffer; of which nothing is known, each once."""
    return sum(b.size_bytes if n is None else n for n in (b.bytes_read, b.bytes_written))


def pool_sizes(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], plan: Plan) -> list[int]:
    """Bytes that a plan needs of each pool."""
    ends = [(plan[b.name].pool, plan[b.name].byte_offset + b.size_bytes) for b in buffers if b.size_bytes]
    return [max((end for pool, end in ends if pool == p.name), default=0) for p in pools]


def score(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], plan: Plan) -> tuple[int, list[int]]:
    """The cost of a plan and its sizes, as `cheapest` counts them."""
    cost = sum(moved(b) * [p.name for p in b.candidates(pools)].index(plan[b.name].pool) for b in buffers)
    return int(Fraction(cost)), pool_sizes(buffers, pools, plan)[::-1]


def overlaps(buffers: Sequence[BufferInfo], plan: Plan) -> list[str]:
    """Pairs that are live at one tick and share a byte, and buffers that are misaligned: by sorting and sweeping bytes, from
    the lifetimes and not from the conflicts."""
    wrong = [b.name for b in buffers if plan[b.name].byte_offset % b.alignment or plan[b.name].byte_offset < 0]
    spans = sorted((plan[b.name].pool, plan[b.name].byte_offset, plan[b.name].byte_offset + b.size_bytes, i)
                   for i, b in enumerate(buffers) if b.size_bytes)
    for at, (pool, _, end, i) in enumerate(spans):
        for other_pool, other_start, _, j in itertools.islice(spans, at + 1, None):
            if other_pool != pool or other_start >= end:
                break
            if any(a <= z and y <= b for a, b in buffers[i].live or () for y, z in buffers[j].live or ()):
                wrong.append(f"{buffers[i].name} {buffers[j].name}")
    return wrong
