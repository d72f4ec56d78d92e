"""Facts of a control flow graph that its structured form is made by: loops, blocks where ways join, values that are live.

A loop is natural: all that reaches its header again without leaving by it. A graph with another way into a loop is irreducible.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from ...dialects.standard.blocks import RETURN, Blocks
from ...graph.dominance import dominates, predecessors
from ...graph.graph import Operation, Value, captures

END = -1
"""Stands for the end of the function among the blocks that a branch goes to."""


class BlockFacts:
    """Of one `Blocks` operation."""

    def __init__(self, operation: Operation, op: Blocks) -> None:
        self.operation, self.exits = operation, op.exits
        self.blocks = operation.regions
        self.targets: list[tuple[int, ...]] = [(END,) if end.spelling == RETURN else end.targets for end in op.exits]
        self.inside = [[t for t in targets if t != END] for targets in self.targets]
        self.dominators = op.region_parents()
        self.before = predecessors(self.inside)

    # ---- loops -------------------------------------------------------------------------------------------------------
    def give_up_structure(self) -> None:
        """Take the graph for one that is not reducible."""
        for name in ("loops", "handed"):
            self.__dict__.pop(name, None)
        self.__dict__["is_reducible"] = False

    @cached_property
    def is_reducible(self) -> bool:
        """True if every loop is entered at one block alone."""
        return all(dominates(self.dominators, header, block) for header, block in self.back_edges)

    @cached_property
    def back_edges(self) -> list[tuple[int, int]]:
        """Branches to a block that comes before, or to their own: (that block, the one that branches)."""
        return [(t, block) for block, targets in enumerate(self.inside) for t in targets if t <= block]

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """The blocks of each loop, by its header; none of a graph that is not reducible."""
        found: dict[int, set[int]] = {}
        for header, block in self.back_edges if self.is_reducible else ():
            self.gather(found.setdefault(header, {header}), block)
        return {header: frozenset(blocks) for header, blocks in found.items()}

    def gather(self, loop: set[int], latch: int) -> None:
        """Add what leads to the latch without passing the header, which is in the loop already."""
        queue = [latch]
        while queue:
            block = queue.pop()
            if block not in loop:
                loop.add(block)
                queue += self.before[block]

    def left_for(self, header: int) -> frozenset[int]:
        """The blocks that a loop's own lead to, outside of it."""
        loop = self.loops[header]
        return frozenset(t for block in loop for t in self.inside[block] if t not in loop)

    # ---- joins -------------------------------------------------------------------------------------------------------
    @cached_property
    def children(self) -> list[list[int]]:
        """The blocks that each immediately dominates, in order."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for block in range(1, len(self.blocks)):
            found[self.dominators[block]].append(block)
        return found

    def joins(self, block: int) -> list[int]:
        """Where ways join that part at a block, in order."""
        return [c for c in self.children[block] if sum(p < c for p in self.before[c]) > 1]

    def behind(self, header: int) -> list[int]:
        """The blocks outside of a loop that one inside immediately dominates, in order."""
        loop = self.loops[header]
        return sorted(c for block in loop for c in self.children[block] if c not in loop)

    def reached(self, block: int, stops: Iterable[int]) -> frozenset[int]:
        """Which of the stops, or END, a block leads to without passing another."""
        found, seen, queue, ends = set(), {block}, [block], {*stops, END}
        while queue:
            for target in self.targets[queue.pop()]:
                if target in ends:
                    found.add(target)
                elif target not in seen:
                    seen.add(target)
                    queue.append(target)
        return frozenset(found)

    # ---- values ------------------------------------------------------------------------------------------------------
    @cached_property
    def definer(self) -> dict[Value, int]:
        """The block that defines each value."""
        return {v: number for number, block in enumerate(self.blocks)
                for v in (*block.arguments, *(r for o in block.operations for r in o.results))}

    @cached_property
    def live(self) -> list[dict[Value, None]]:
        """The values of other blocks that are read from the beginning of each block on."""
        own = [self.read(number) for number in range(len(self.blocks))]
        found: list[dict[Value, None]] = [dict(values) for values in own]
        changed = True
        while changed:
            changed = False
            for number in reversed(range(len(self.blocks))):
                size = len(found[number])
                for target in self.inside[number]:
                    found[number].update((v, None) for v in found[target] if self.definer[v] != number)
                changed |= len(found[number]) != size
        return found

    def read(self, number: int) -> dict[Value, None]:
        block = self.blocks[number]
        used = [v for o in block.operations for v in (*o.operands, *captures(o))] + list(block.yields)
        return {v: None for v in used if self.definer.get(v, number) != number}

    @cached_property
    def handed(self) -> list[tuple[Value, ...]]:
        """The values that each block is handed besides its arguments: those that a loop defines and a block behind it reads;
        all that it reads where blocks are chosen one by one."""
        if not self.is_reducible:
            return [tuple(values) for values in self.live]
        return [tuple(v for v in self.live[number] if any(self.definer[v] in loop and number not in loop
                                                          for loop in self.loops.values()))
                for number in range(len(self.blocks))]

    def arguments(self, number: int, results: int) -> int:
        """How many values a block is handed in all; the end of the function its results."""
        return results if number == END else len(self.blocks[number].arguments) + len(self.handed[number])

    def taken(self, number: int) -> Sequence[Value]:
        """The values that a block is handed."""
        return (*self.blocks[number].arguments, *self.handed[number])
