"""Dominators in a control flow graph: every path from the first block to a block goes through the block's dominators.

The algorithm is that of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001). Blocks are numbered; block 0
is the entry. Unreachable blocks are not in the order.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence


def reverse_postorder(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the reachable blocks in reverse postorder."""
    found: list[int] = []
    seen, stack = {0}, [(0, iter(successors[0]))]
    while stack:
        block, left = stack[-1]
        for target in left:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            found.append(block)
            stack.pop()
    return found[::-1]


def predecessors(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the predecessors of each block, once for each edge."""
    found: list[list[int]] = [[] for _ in successors]
    for block, targets in enumerate(successors):
        for target in targets:
            found[target].append(block)
    return found


def immediate_dominators(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return, for each block, the nearest other block that dominates it; the entry's is the entry. Blocks have to be in reverse
    postorder, and the entry has to reach all."""
    before = predecessors(successors)
    found = [0] + [-1] * (len(successors) - 1)
    changed = True
    while changed:
        changed = False
        for block in range(1, len(successors)):
            known = [p for p in before[block] if found[p] >= 0]
            nearest = known[0]
            for other in known[1:]:
                nearest = common(found, nearest, other)
            changed |= found[block] != nearest
            found[block] = nearest
    return found


def common(dominators: Sequence[int], a: int, b: int) -> int:
    """Return the nearest block that dominates both."""
    while a != b:
        while a > b:
            a = dominators[a]
        while b > a:
            b = dominators[b]
    return a


def dominates(dominators: Sequence[int], a: int, b: int) -> bool:
    """True if every path to `b` goes through `a`."""
    while b > a:
        b = dominators[b]
    return a == b


def walk(dominators: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Yield each block on the way down (True) and up (False) the dominator tree: between both, its definitions are visible."""
    children: list[list[int]] = [[] for _ in dominators]
    for block in range(1, len(dominators)):
        children[dominators[block]].append(block)
    yield 0, True
    stack = [(0, iter(children[0]))]
    while stack:
        block, left = stack[-1]
        child = next(left, None)
        if child is None:
            stack.pop()
            yield block, False
        else:
            yield child, True
            stack.append((child, iter(children[child])))
