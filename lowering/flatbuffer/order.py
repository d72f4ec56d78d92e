"""The order in which a block's operators run: each after those whose results it takes, variables as they are listed."""
from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from .records import OperatorRecord


class Cycle(Exception):
    """Operators need each other's results; `number` is one of them."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def in_order(operators: Sequence[OperatorRecord], makers: Mapping[str, int], has_effect: Sequence[bool]) -> list[int]:
    """Numbers of operators in an order that works, as near the listed one as can be; raises Cycle where there is none.

    `makers` says which operator a name is the result of; operators that have an effect on variables keep their order.
    """
    before: list[set[int]] = []
    last = None
    for number, operator in enumerate(operators):
        needed = {makers[name] for name in operator.inputs if name in makers}
        if has_effect[number]:
            needed |= {last} if last is not None else set()
            last = number
        before.append(needed)
    if all(max(needed, default=-1) < number for number, needed in enumerate(before)):
        return list(range(len(operators)))
    return sorted_numbers(before)


def sorted_numbers(before: Sequence[set[int]]) -> list[int]:
    """Topological order, the least number first."""
    after: list[list[int]] = [[] for _ in before]
    for number, needed in enumerate(before):
        for other in needed:
            after[other].append(number)
    missing = [len(needed) for needed in before]
    ready = [number for number, count in enumerate(missing) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for other in after[number]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, other)
    if len(order) < len(before):
        raise Cycle(next(number for number, count in enumerate(missing) if count))
    return order
